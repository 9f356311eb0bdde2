//! Metrics of cells side by side.

use femtile_device::cpu::Aligned;
use femtile_tensor::Contract;
use rayon::prelude::*;

use super::cells::{BatchMetric, Cells};
use super::numbers::Numbers;
use crate::FemError;
use crate::matrix_free::metric::{Entries, Metrics, Scratch, Variation};

/// Metrics of all cells, batch by batch.
#[derive(Debug)]
pub(super) struct BatchMetrics<T> {
    variations: Vec<Variation>,
    /// Where the metric of each batch begins: `[n_batches + 1]`.
    begins: Vec<usize>,
    entries: Aligned<T>,
}

impl<T: Contract> BatchMetrics<T> {
    pub fn new(metrics: &Metrics<'_>, cells: &Cells<T>, numbers: &Numbers) -> Result<Self, FemError> {
        let lanes = numbers.lanes;
        let variations = (0..numbers.n_batches())
            .into_par_iter()
            .map_init(Scratch::default, |scratch, batch| {
                variation(metrics, cells, (0..lanes).map(|lane| numbers.position(batch, lane)), scratch)
            })
            .collect::<Result<Vec<_>, FemError>>()?;
        let mut begins = vec![0];
        for variation in &variations {
            let len = match variation {
                Variation::Diagonal => 4,
                Variation::Constant => 7,
                Variation::Any => cells.n_points() * cells.stored_entries().len(),
            };
            begins.push(begins[begins.len() - 1] + len * lanes);
        }
        let entries = Aligned::zeros(begins[variations.len()]);
        let mut found = Self { variations, begins, entries };
        found.fill(metrics, cells.stored_entries(), numbers)?;
        Ok(found)
    }

    fn fill(&mut self, metrics: &Metrics<'_>, stored: &[usize], numbers: &Numbers) -> Result<(), FemError> {
        let (lanes, mut rest) = (numbers.lanes, &mut self.entries[..]);
        let mut parts = Vec::with_capacity(self.variations.len());
        for (ends, variation) in self.begins.windows(2).zip(&self.variations) {
            let (part, tail) = rest.split_at_mut(ends[1] - ends[0]);
            parts.push((part, *variation));
            rest = tail;
        }
        let room = || (Scratch::default(), Vec::new());
        parts.into_par_iter().enumerate().try_for_each_init(
            room,
            |(scratch, entries), (batch, (part, variation))| {
                for lane in 0..lanes {
                    let cell = numbers.position(batch, lane);
                    match variation {
                        Variation::Any => {
                            metrics.at_points(cell, scratch, entries)?;
                            fill(part, entries, stored, lanes, lane);
                        }
                        Variation::Constant => {
                            *entries = vec![metrics.constant(cell, scratch)?];
                            fill(part, entries, &[0, 1, 2, 3, 4, 5, 6], lanes, lane);
                        }
                        Variation::Diagonal => {
                            *entries = vec![metrics.constant(cell, scratch)?];
                            fill(part, entries, &[0, 1, 2, 6], lanes, lane);
                        }
                    }
                }
                Ok(())
            },
        )
    }

    /// The metric of a batch.
    pub fn of(&self, batch: usize) -> BatchMetric<'_, T> {
        let entries = &self.entries[self.begins[batch]..self.begins[batch + 1]];
        match self.variations[batch] {
            Variation::Diagonal => BatchMetric::Diagonal(entries),
            Variation::Constant => BatchMetric::Constant(entries),
            Variation::Any => BatchMetric::Stored(entries),
        }
    }

    /// Bytes of all metrics.
    pub fn bytes(&self) -> usize {
        self.entries.len() * size_of::<T>()
    }
}

/// The simplest kind of metric that serves all cells of a batch.
fn variation<T: Contract>(
    metrics: &Metrics<'_>,
    cells: &Cells<T>,
    positions: impl Iterator<Item = usize>,
    scratch: &mut Scratch,
) -> Result<Variation, FemError> {
    let mut worst = if cells.is_separable() { Variation::Diagonal } else { Variation::Constant };
    for position in positions {
        worst = worst.max(metrics.variation(position, scratch)?);
    }
    Ok(worst)
}

/// Writes one lane: `[points][kept][lanes]`.
fn fill<T: Contract>(to: &mut [T], entries: &[Entries], kept: &[usize], lanes: usize, lane: usize) {
    for (to, entries) in to.chunks_exact_mut(kept.len() * lanes).zip(entries) {
        for (k, &entry) in kept.iter().enumerate() {
            to[k * lanes + lane] = T::from_f64(entries[entry]);
        }
    }
}
