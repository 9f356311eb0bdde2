//! Cells side by side: their unknowns and their metrics.

use std::ops::Range;

use femtile_device::cpu::Aligned;
use femtile_tensor::Contract;
use rayon::prelude::*;

use super::cells::{BatchMetric, Cells};
use super::layout::Layout;
use crate::FemError;
use crate::dofs::TensorSpace;
use crate::matrix_free::metric::{Entries, Metrics, Scratch, Variation};

/// Where the unknowns of a batch are found.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unknowns<'a> {
    /// First degree of freedom of each entity: `[3^d][lanes]`.
    Firsts(&'a [u32]),
    /// Every degree of freedom: `[(p + 1)^d][lanes]`.
    All(&'a [u32]),
}

/// All cells, a batch for as many as there are lanes; the last one repeats its last cell.
#[derive(Debug)]
pub(super) struct Batches<T> {
    pub lanes: usize,
    pub n_cells: usize,
    firsts: Vec<u32>,
    /// Lists of batches with an irregular cell, their length, and where each begins.
    lists: Vec<u32>,
    list_len: usize,
    list_of: Vec<Option<usize>>,
    variations: Vec<Variation>,
    /// Where the metric of each batch begins: `[n_batches + 1]`.
    begins: Vec<usize>,
    metrics: Aligned<T>,
}

impl<T: Contract> Batches<T> {
    pub fn new(
        space: &TensorSpace<'_>,
        metrics: &Metrics<'_>,
        cells: &Cells<T>,
        layout: &Layout,
        lanes: usize,
    ) -> Result<Self, FemError> {
        let n_batches = space.n_cells().div_ceil(lanes);
        let position = |batch: usize, lane: usize| (batch * lanes + lane).min(space.n_cells() - 1);
        let n_entities = layout.n_entities();
        let mut firsts = vec![0; n_batches * n_entities * lanes];
        firsts.par_chunks_exact_mut(n_entities * lanes).enumerate().for_each(|(batch, firsts)| {
            for lane in 0..lanes {
                let of_cell = space.firsts(position(batch, lane));
                (0..n_entities).for_each(|entity| firsts[entity * lanes + lane] = of_cell[entity]);
            }
        });
        let variations = (0..n_batches)
            .into_par_iter()
            .map_init(Scratch::default, |scratch, batch| {
                variation(metrics, cells, (0..lanes).map(|lane| position(batch, lane)), scratch)
            })
            .collect::<Result<Vec<_>, FemError>>()?;
        let n_entries = cells.stored_entries().len();
        let n_points = cells.m.pow(space.dimension() as u32);
        let mut begins = vec![0; n_batches + 1];
        for (batch, variation) in variations.iter().enumerate() {
            let len = match variation {
                Variation::Diagonal => 4,
                Variation::Constant => 7,
                Variation::Any => n_points * n_entries,
            };
            begins[batch + 1] = begins[batch] + len * lanes;
        }
        let mut batches = Self {
            lanes,
            n_cells: space.n_cells(),
            firsts,
            lists: Vec::new(),
            list_len: space.dofs_per_cell() * lanes,
            list_of: vec![None; n_batches],
            variations,
            metrics: Aligned::zeros(begins[n_batches]),
            begins,
        };
        batches.find_lists(space, position);
        batches.fill_metrics(metrics, &cells.stored_entries(), position)?;
        Ok(batches)
    }

    fn find_lists(&mut self, space: &TensorSpace<'_>, position: impl Fn(usize, usize) -> usize) {
        let lanes = self.lanes;
        let mut dofs = vec![0; space.dofs_per_cell()];
        for batch in 0..self.len() {
            if (0..lanes).all(|lane| space.irregular(position(batch, lane)).is_none()) {
                continue;
            }
            let begin = self.lists.len();
            self.list_of[batch] = Some(begin);
            self.lists.resize(begin + self.list_len, 0);
            for lane in 0..lanes {
                space.cell_dofs(position(batch, lane), &mut dofs);
                let list = self.lists[begin..].chunks_exact_mut(lanes);
                list.zip(&dofs).for_each(|(entries, &dof)| entries[lane] = dof);
            }
        }
    }

    fn fill_metrics(
        &mut self,
        metrics: &Metrics<'_>,
        stored: &[usize],
        position: impl Fn(usize, usize) -> usize + Sync,
    ) -> Result<(), FemError> {
        let (lanes, mut rest) = (self.lanes, &mut self.metrics[..]);
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
                    let cell = position(batch, lane);
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

    /// Number of batches.
    pub fn len(&self) -> usize {
        self.variations.len()
    }

    /// Batches of cells at some positions, which begin with a batch.
    pub fn of_cells(&self, positions: &Range<usize>) -> Range<usize> {
        positions.start / self.lanes..positions.end.div_ceil(self.lanes)
    }

    /// Cells of a batch, without repeated ones.
    pub fn n_active(&self, batch: usize) -> usize {
        (self.n_cells - batch * self.lanes).min(self.lanes)
    }

    pub fn unknowns(&self, batch: usize) -> Unknowns<'_> {
        let per_batch = self.firsts.len() / self.len();
        match self.list_of[batch] {
            None => Unknowns::Firsts(&self.firsts[batch * per_batch..(batch + 1) * per_batch]),
            Some(begin) => Unknowns::All(&self.lists[begin..begin + self.list_len]),
        }
    }

    /// First degree of freedom of each entity, also where there is a list: `[3^d][lanes]`.
    pub fn firsts(&self, batch: usize) -> &[u32] {
        let per_batch = self.firsts.len() / self.len();
        &self.firsts[batch * per_batch..(batch + 1) * per_batch]
    }

    pub fn metric(&self, batch: usize) -> BatchMetric<'_, T> {
        let entries = &self.metrics[self.begins[batch]..self.begins[batch + 1]];
        match self.variations[batch] {
            Variation::Diagonal => BatchMetric::Diagonal(entries),
            Variation::Constant => BatchMetric::Constant(entries),
            Variation::Any => BatchMetric::Stored(entries),
        }
    }

    /// Bytes of metrics and of numbers of unknowns.
    pub fn bytes(&self) -> usize {
        self.metrics.len() * size_of::<T>() + 4 * (self.firsts.len() + self.lists.len())
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
