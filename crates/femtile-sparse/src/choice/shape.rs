use std::cmp::Reverse;

use super::statistics::{Statistics, Stretch};
use crate::ell_warp::EllWarpConfig;
use crate::ell_warp::slices::{LONG, lanes_of_length};

/// Sizes of a layout in slices, estimated from a sample of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Shape {
    pub n_slices: f64,
    /// Columns of all slices.
    pub n_columns: f64,
    /// Rounds of loads of all slices.
    pub n_rounds: f64,
    /// Columns whose distances do not fit 16 bits.
    pub n_far_columns: f64,
    /// Columns of the widest slice that one warp takes.
    pub widest: f64,
    /// Slices that a block takes.
    pub n_longs: f64,
    /// Columns of the widest of those.
    pub longest: f64,
}

impl Shape {
    /// The shape of `config`, whose kernels have `batch` columns under way.
    pub fn of(statistics: &Statistics, config: &EllWarpConfig, batch: usize) -> Self {
        let mut shape = Self::default();
        if config.window == EllWarpConfig::ALL_ROWS {
            let rows = statistics.lengths.iter().flat_map(|&(length, n)| std::iter::repeat_n(length, n));
            shape.add(&rows.collect::<Vec<_>>(), config, batch, |_| false);
            // Rows of one length keep their order, so their columns are about as near as in the sample.
            let mut sampled = Self::default();
            for stretch in &statistics.stretches {
                sampled.add_sorted(stretch, 0..stretch.lengths.len(), config, batch);
            }
            let share = sampled.n_far_columns / sampled.n_columns.max(1.0);
            return Self { n_far_columns: share * shape.n_columns, ..shape };
        }
        for stretch in &statistics.stretches {
            let n = stretch.lengths.len();
            let window = if config.window == 1 { n } else { config.window.min(n) };
            for first in (0..n).step_by(window.max(1)) {
                let rows = first..(first + window).min(n);
                if config.window == 1 {
                    shape.add(&stretch.lengths, config, batch, |range| is_far(stretch, range));
                } else {
                    shape.add_sorted(stretch, rows, config, batch);
                }
            }
        }
        let scale = statistics.scale();
        let Self { widest, longest, .. } = shape;
        Self {
            n_slices: scale * shape.n_slices,
            n_columns: scale * shape.n_columns,
            n_rounds: scale * shape.n_rounds,
            n_far_columns: scale * shape.n_far_columns,
            n_longs: scale * shape.n_longs,
            // The longest row of all may not be in the sample.
            widest: if config.threshold.is_none() { statistics.longest() as f64 } else { widest },
            longest: if config.threshold.is_none() {
                longest
            } else {
                (statistics.longest().div_ceil(config.lanes)) as f64
            },
        }
    }

    fn add_sorted(
        &mut self,
        stretch: &Stretch,
        rows: std::ops::Range<usize>,
        config: &EllWarpConfig,
        batch: usize,
    ) {
        let mut order: Vec<usize> = rows.collect();
        order.sort_by_key(|&row| Reverse(stretch.lengths[row]));
        let lengths: Vec<u32> = order.iter().map(|&row| stretch.lengths[row]).collect();
        let far = |range: std::ops::Range<usize>| is_far(stretch, order[range].iter().copied());
        self.add(&lengths, config, batch, far);
    }

    /// Adds the slices of rows of these lengths in this order.
    fn add(
        &mut self,
        lengths: &[u32],
        config: &EllWarpConfig,
        batch: usize,
        is_far: impl Fn(std::ops::Range<usize>) -> bool,
    ) {
        let mut first = 0;
        while first < lengths.len() {
            let lanes_of_row = config
                .threshold
                .map_or(1, |threshold| lanes_of_length(lengths[first] as usize, threshold, config.lanes));
            let next = (first + config.lanes / lanes_of_row).min(lengths.len());
            let longest = lengths[first..next].iter().max().copied().unwrap_or(0) as usize;
            let width = longest.div_ceil(lanes_of_row);
            self.n_slices += 1.0;
            self.n_columns += width as f64;
            if lanes_of_row == config.lanes && width > LONG {
                self.n_longs += 1.0;
                self.longest = self.longest.max(width as f64);
            } else {
                self.n_rounds += width.div_ceil(batch) as f64;
                self.widest = self.widest.max(width as f64);
            }
            if is_far(first..next) {
                self.n_far_columns += width as f64;
            }
            first = next;
        }
    }
}

/// Returns whether distances in some rows that share a slice do not fit 16 bits.
fn is_far(stretch: &Stretch, mut rows: impl Iterator<Item = usize> + Clone) -> bool {
    let base = rows.clone().map(|row| stretch.firsts[row]).min().unwrap_or(0);
    rows.any(|row| {
        stretch.gaps[row] > u32::from(u16::MAX) || stretch.firsts[row] - base > u32::from(u16::MAX)
    })
}
