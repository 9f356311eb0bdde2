//! Expected times of products, as `docs/derivations/sparse-products.md` derives them.

use femtile_device::{HostDevice, Scalar};

use super::shape::Shape;
use super::statistics::Statistics;
use super::{Machine, candidates};
use crate::ell_warp::cuda::batch;
use crate::ell_warp::{EllWarpConfig, IndexKind};
use crate::{Csr, Format};

/// The expected time of a product in one format.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The format.
    pub format: Format,
    /// Seconds of a product with vectors of f64.
    pub seconds: f64,
}

/// Returns the expected times of all candidates, the shortest first.
///
/// # Cost
/// One pass over the offsets and a sample of at most 200,000 rows.
pub fn estimates<T: Scalar, H: HostDevice>(a: &Csr<T, H>, machine: &Machine) -> Vec<Estimate> {
    let statistics = Statistics::of(a);
    let mut estimates: Vec<Estimate> = candidates(machine)
        .into_iter()
        .map(|format| {
            let work = Work::of(&statistics, format);
            let seconds = match *machine {
                Machine::Gpu { n_multiprocessors, cache_bytes } => {
                    Gpu { n_multiprocessors, cache_bytes }.seconds(&statistics, &work)
                }
                Machine::Cpu { .. } => cpu_seconds(&statistics, &work),
            };
            Estimate { format, seconds }
        })
        .collect();
    estimates.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    estimates
}

/// The work of a product in one format.
#[derive(Clone, Copy)]
pub(super) struct Work {
    /// Bytes of the matrix and of y, each moved once.
    pub stream_bytes: f64,
    /// Pieces that one warp, or one vector of a CPU, does from its description to its results.
    n_pieces: f64,
    /// Rounds of loads of all pieces.
    n_rounds: f64,
    /// Columns of the widest piece.
    widest: f64,
    /// Stored entries.
    pub n_stored: f64,
    /// Logarithm of the lanes of a row, on average.
    fold: f64,
    lanes: usize,
    is_described: bool,
    is_folded: bool,
    has_distances: bool,
    sorts_all: bool,
    is_csr: bool,
}

impl Work {
    fn of(statistics: &Statistics, format: Format) -> Self {
        match format {
            Format::EllWarp(config) => Self::of_slices(statistics, &config),
            Format::Csr => Self::of_csr(statistics),
        }
    }

    fn of_slices(statistics: &Statistics, config: &EllWarpConfig) -> Self {
        let has_distances = config.indices == IndexKind::Delta;
        let shape = Shape::of(statistics, config, batch(config.lanes, has_distances));
        Self::of_shape(statistics.n_rows, &shape, config)
    }

    /// That of `n_rows` rows in slices of a known shape.
    pub(super) fn of_shape(n_rows: usize, shape: &Shape, config: &EllWarpConfig) -> Self {
        let has_distances = config.indices == IndexKind::Delta;
        let (lanes, n) = (config.lanes as f64, n_rows as f64);
        let n_stored = shape.n_columns * lanes;
        let index_bytes =
            if has_distances { 2.0 * n_stored + 2.0 * shape.n_far_columns * lanes } else { 4.0 * n_stored };
        let is_folded = config.threshold.is_some();
        let description = 4.0 + if is_folded { 8.0 } else { 0.0 } + if has_distances { 8.0 } else { 0.0 };
        let row_map = if config.window == 1 { 0.0 } else { 4.0 };
        Self {
            stream_bytes: 8.0 * n_stored + index_bytes + description * shape.n_slices + (8.0 + row_map) * n,
            n_pieces: shape.n_slices + shape.n_longs,
            n_rounds: shape.n_rounds,
            widest: shape.widest.max(shape.longest / WARPS_OF_BLOCK),
            n_stored,
            fold: if is_folded { (shape.n_slices * lanes / n.max(1.0)).max(1.0).log2() } else { 0.0 },
            lanes: config.lanes,
            is_described: true,
            is_folded,
            has_distances,
            sorts_all: config.window == EllWarpConfig::ALL_ROWS,
            is_csr: false,
        }
    }

    pub(super) fn of_csr(statistics: &Statistics) -> Self {
        let (n, n_nonzeros) = (statistics.n_rows as f64, statistics.n_nonzeros as f64);
        Self {
            stream_bytes: 12.0 * n_nonzeros + 12.0 * n,
            n_pieces: n / 32.0,
            n_rounds: n_nonzeros / 64.0,
            // A thread adds its row alone.
            widest: statistics.longest() as f64 / 8.0,
            n_stored: n_nonzeros,
            fold: 0.0,
            lanes: 32,
            is_described: false,
            is_folded: false,
            has_distances: false,
            sorts_all: false,
            is_csr: true,
        }
    }
}

/// Warps that share a long row: those of a block.
const WARPS_OF_BLOCK: f64 = 4.0;

pub(super) struct Gpu {
    pub n_multiprocessors: usize,
    pub cache_bytes: usize,
}

/// Multiprocessors of the GPU that the constants were fitted on, an H200.
const FITTED_MULTIPROCESSORS: f64 = 132.0;

impl Gpu {
    /// $t = t_l + (t_m^p + t_c^p)^{1/p} + t_w$: launch, memory and chains of loads side by side, the last warp.
    pub(super) fn seconds(&self, statistics: &Statistics, work: &Work) -> f64 {
        const EXPONENT: f64 = 2.15;
        const LAUNCH: f64 = 0.98e-6;
        const DESCRIBED: f64 = 0.51e-6;
        const LAST: f64 = 0.45;
        let (memory, chains) = (self.memory_seconds(statistics, work), self.chain_seconds(work));
        let last = LAST * ROUND * work.widest / 5.0;
        let launch = LAUNCH + if work.is_described { DESCRIBED } else { 0.0 };
        launch + (memory.powf(EXPONENT) + chains.powf(EXPONENT)).powf(1.0 / EXPONENT) + last
    }

    /// Bytes over the bandwidth of the memory or, for small matrices, of the cache; entries of x are loaded in sectors of
    /// 32 bytes, and where all rows are sorted x is reread for each length.
    fn memory_seconds(&self, statistics: &Statistics, work: &Work) -> f64 {
        const FROM_MEMORY: f64 = 5.03e12;
        const FROM_CACHE: f64 = 5.42e12;
        const GATHERED: f64 = 5.19e12;
        const AGAIN: f64 = 0.039e-12 * 8.0;
        let scale = self.n_multiprocessors as f64 / FITTED_MULTIPROCESSORS;
        let vector_bytes = 8.0 * statistics.n_cols as f64;
        let filled = (work.stream_bytes + vector_bytes) / self.cache_bytes.max(1) as f64;
        // The cache gives way before it is full.
        let uncached = 1.0 / (1.0 + (-(filled - 0.72) / 0.025).exp());
        let bandwidth = FROM_CACHE * (1.0 - uncached) + FROM_MEMORY * uncached;
        let gathered = 32.0 * statistics.sectors.min(1.0) * statistics.n_nonzeros as f64;
        let again = if work.sorts_all { uncached * AGAIN * statistics.n_cols as f64 } else { 0.0 };
        let staged = if work.is_csr { 1.3 } else { 1.0 };
        (staged * work.stream_bytes / bandwidth + gathered / GATHERED) / scale + again
    }

    /// Chains of loads of all warps over the warps that run at once.
    fn chain_seconds(&self, work: &Work) -> f64 {
        const FOLDED: f64 = 0.08e-6;
        const FOLD: f64 = 0.22e-6;
        const DISTANCES: f64 = 0.37e-6;
        const STAGE: f64 = 0.6e-6;
        let warps = if work.lanes > 32 { 68.0 } else { 54.0 };
        let round = if work.is_described { ROUND } else { 0.6 * ROUND };
        let piece = if work.is_folded { FOLDED } else { 0.0 }
            + FOLD * work.fold
            + if work.has_distances { DISTANCES } else { 0.0 }
            + if work.is_csr { STAGE } else { 0.0 };
        (work.n_pieces * piece + work.n_rounds * round) / (self.n_multiprocessors as f64 * warps)
    }
}

/// Seconds of a round of loads of a warp, through to the entries of x.
const ROUND: f64 = 1.25e-6;

/// One core: the larger of bytes over bandwidth and of steps, which for rows of CSR include their ends.
pub(super) fn cpu_seconds(statistics: &Statistics, work: &Work) -> f64 {
    const BANDWIDTH: f64 = 25e9;
    const STEP: f64 = 0.25e-9;
    const DISTANCE: f64 = 0.1e-9;
    const SLICE: f64 = 2.5e-9;
    const ROW: f64 = 3e-9;
    const FAR: f64 = 1.5e-9;
    let n = statistics.n_rows as f64;
    let ends = if work.is_csr { ROW * n } else { SLICE * work.n_pieces };
    let step = STEP + if work.has_distances { DISTANCE } else { 0.0 };
    let gathered = FAR * (statistics.sectors - 0.25).max(0.0) * statistics.n_nonzeros as f64;
    let memory = (work.stream_bytes + 8.0 * n) / BANDWIDTH;
    memory.max(step * work.n_stored + ends + gathered) + 0.2 * memory.min(ends)
}

#[cfg(test)]
mod tests {
    use femtile_device::Reference;

    use super::*;
    use crate::csr::HostOffsets;

    const GPU: Machine = Machine::Gpu { n_multiprocessors: 132, cache_bytes: 60 << 20 };

    /// Rows of these lengths, their columns spread evenly.
    fn matrix(lengths: impl Iterator<Item = usize>, n_cols: usize) -> Csr<f64, Reference> {
        let lengths: Vec<usize> = lengths.collect();
        let columns: Vec<u32> = lengths
            .iter()
            .enumerate()
            .flat_map(|(row, &n)| {
                let first = row.min(n_cols - n);
                (first..first + n).map(|column| column as u32)
            })
            .collect();
        let offsets = HostOffsets::from_row_lengths(lengths.iter().copied());
        let values = vec![1.0; columns.len()];
        Csr::from_parts(&Reference, n_cols, offsets, columns, values).expect("a sound matrix")
    }

    fn best(a: &Csr<f64, Reference>) -> EllWarpConfig {
        match estimates(a, &GPU).iter().find(|estimate| matches!(estimate.format, Format::EllWarp(_))) {
            Some(Estimate { format: Format::EllWarp(config), .. }) => *config,
            _ => panic!("slices are among the candidates"),
        }
    }

    #[test]
    fn short_rows_of_one_length_are_left_in_their_order() {
        let config = best(&matrix((0..300_000).map(|_| 15), 300_000));
        assert_eq!((config.window, config.threshold), (1, None));
    }

    #[test]
    fn a_few_very_long_rows_are_shared_by_many_lanes() {
        let length = |row: usize| if row.is_multiple_of(5000) { 4000 } else { 2 + row % 2 };
        let config = best(&matrix((0..200_000).map(length), 200_000));
        assert!(config.threshold.is_some(), "{config:?}");
    }

    #[test]
    fn nothing_is_expected_of_an_empty_matrix_but_a_launch() {
        let a = matrix(std::iter::empty(), 1);
        assert!(estimates(&a, &GPU).iter().all(|estimate| estimate.seconds.is_finite()));
        assert!(estimates(&a, &Machine::Cpu { lanes: 4 }).iter().all(|estimate| estimate.seconds < 1e-6));
    }
}
