//! The steps of each method, counted from its algorithm.

use super::{Clock, Cluster, Part, Prediction};

/// Methods whose iterations are modelled: on linear tetrahedra with their matrix, patches on hexahedra of degree 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// One pass over all vectors and one sum of seven values.
    MergedCg,
    /// One sum that goes on during the next product.
    PipelinedCg,
    /// Three steps at once: one product more and one sum.
    SStepCg,
    /// Conjugate gradients with a V cycle of smoothed aggregation.
    Amg,
    /// Conjugate gradients with geometric multigrid that smooths on vertex patches of a box, whose layers of cells are divided
    /// among ranks.
    VertexPatches,
}

/// Steps of the s-step method.
const STEPS: usize = 3;
/// Non-zeros of a row of linear tetrahedra.
const NONZEROS: f64 = 15.0;
/// Degree of the hexahedra.
const DEGREE: f64 = 3.0;

/// Rows that a coarse row stands for, and work of a row of any coarser level over one of the finest, whose rows are
/// shorter; from the operator complexity of 1.185 of `bench/results/amg-xeon-avx512-16-cores.json`.
const ROWS_PER_AGGREGATE: f64 = 20.0;
const COARSE_DENSITY: f64 = 3.5;
/// When levels are collected, as `Amg` and `DistributedMultigrid` decide it.
const FEW_ROWS: f64 = 10_000.0;
const SHARE: f64 = 0.15;
const LEAST_GAIN: f64 = 0.8;
/// Degree of the Chebyshev polynomials of aggregation.
const CHEBYSHEV: usize = 2;

/// Bytes of a cycle for each unknown of a level smoothed on vertex patches: `gmg` of degree 3 takes 24.5 ms an iteration for
/// 3.05 million unknowns on 16 threads (`bench/results/threads-xeon-avx512-16-cores.json`), of which conjugate gradients
/// take a tenth and the finest level seven eighths of the rest; that record smooths by rows, which takes 0.7 of the time.
const PATCH_BYTES: f64 = 1230.0;
/// Layers of cells of others that a rank works on, and the share of all layers up to which it does so.
const LAYERS_OF_OTHERS: f64 = 4.0;
const PART: f64 = 0.8;

/// Bytes of a product with an assembled matrix, an unknown: values of some size and columns, the row, argument and result.
fn matrix_bytes(size: f64) -> f64 {
    NONZEROS * (size + 4.0) + 4.0 + 2.0 * size
}

impl Method {
    /// All methods.
    pub const ALL: [Self; 5] =
        [Self::MergedCg, Self::PipelinedCg, Self::SStepCg, Self::Amg, Self::VertexPatches];

    /// Returns the name in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::MergedCg => "merged-cg",
            Self::PipelinedCg => "pipelined-cg",
            Self::SStepCg => "s-step-cg, s = 3",
            Self::Amg => "cg, amg",
            Self::VertexPatches => "cg, vertex patches, layers",
        }
    }

    /// Returns the time of an iteration for `n` unknowns in all; none if there are fewer layers of cells than ranks that need
    /// one.
    pub fn predict(self, cluster: &Cluster, n: f64, n_ranks: usize) -> Option<Prediction> {
        let of_layers = self == Self::VertexPatches;
        if of_layers && n.cbrt() / DEGREE < n_ranks as f64 {
            return None;
        }
        let part = if of_layers { Part::of_layers(n, DEGREE, n_ranks) } else { Part::of_boxes(n, n_ranks) };
        let (mut clock, owned) = (Clock { cluster, part, seconds: 0.0, bytes: 0.0 }, part.owned);
        let product = |clock: &mut Clock<'_>| clock.exchange(1.0, 8.0, matrix_bytes(8.0) * owned);
        let mut n_iterations = 1.0;
        match self {
            Self::MergedCg => {
                product(&mut clock);
                clock.work(88.0 * owned);
                clock.sum(7.0);
            }
            Self::PipelinedCg => {
                let sum = clock.end_of_sum(3.0);
                product(&mut clock);
                clock.seconds = clock.seconds.max(sum);
                clock.work(120.0 * owned);
            }
            Self::SStepCg => {
                n_iterations = STEPS as f64;
                (0..=STEPS).for_each(|_| product(&mut clock));
                clock.work(64.0 * (n_iterations + 1.0) * owned);
                // Directions before with the basis, half of the basis with itself, and r·r.
                clock.sum(1.5 * n_iterations * (n_iterations + 1.0) + 2.0);
            }
            Self::Amg => {
                product(&mut clock);
                passes_of_cg(&mut clock);
                aggregates(&mut clock, n);
            }
            Self::VertexPatches => {
                let layers = n.cbrt() / DEGREE / n_ranks as f64;
                // The argument, the result with its read for ownership, numbers of unknowns; cells between ranks are
                // worked on by both.
                let by_both = if n_ranks > 1 { 1.0 + 1.0 / layers } else { 1.0 };
                clock.exchange(1.0, 8.0, 0.0);
                clock.work(29.0 * owned * by_both);
                // Several ranks bring vectors into the order of the loop over cells and back.
                clock.work(if n_ranks > 1 { 48.0 * owned } else { 0.0 });
                passes_of_cg(&mut clock);
                layers_of_patches(&mut clock, n);
            }
        }
        Some(Prediction { seconds: clock.seconds / n_iterations, bytes: clock.bytes / n_iterations })
    }
}

/// The vectors and sums of conjugate gradients.
fn passes_of_cg(clock: &mut Clock<'_>) {
    for n_sums in [1.0, 2.0] {
        clock.work(40.0 * clock.part.owned);
        clock.sum(n_sums);
    }
}

/// A cycle of smoothed aggregation for `n` rows.
fn aggregates(clock: &mut Clock<'_>, n: f64) {
    let (ranks, owned) = (clock.part.n_ranks as f64, clock.part.owned);
    // 27 values of a cycle in f32, by the products; prolongators have a quarter of the non-zeros.
    let product = matrix_bytes(4.0) + 27.0 * 4.0 / (2 * CHEBYSHEV) as f64;
    let transfer = 0.25 * NONZEROS * (4.0 + 4.0);
    let density = |level: usize| if level == 0 { 1.0 } else { COARSE_DENSITY };
    let share = |level: usize| ROWS_PER_AGGREGATE.powi(-(level as i32));
    let of_rank = |level: usize| (owned * share(level)).max(if level == 0 { 0.0 } else { 1.0 });
    let (mut n_divided, mut rows) = (0, n);
    while n_divided == 0 || rows > FEW_ROWS && rows * ranks > SHARE * n {
        // Aggregates stay within a rank, so each keeps a row at least.
        let next = (rows / ROWS_PER_AGGREGATE).max(ranks);
        if next > LEAST_GAIN * rows {
            break;
        }
        (n_divided, rows) = (n_divided + 1, next);
    }
    let smooth = |clock: &mut Clock<'_>, level: usize| {
        let bytes = product * density(level) * of_rank(level);
        (0..CHEBYSHEV).for_each(|_| clock.exchange(share(level), 4.0, bytes));
    };
    let move_between = |clock: &mut Clock<'_>, level: usize| {
        clock.exchange(share(level + 1), 4.0, transfer * density(level) * of_rank(level));
    };
    for level in 0..n_divided {
        smooth(clock, level);
        move_between(clock, level);
    }
    // Every rank solves what is collected; levels below it are a tenth of its work.
    clock.gather(rows);
    let cycle = ((2 * CHEBYSHEV) as f64 * product + 2.0 * transfer) * density(n_divided);
    clock.work(1.1 * cycle * rows);
    for level in (0..n_divided).rev() {
        move_between(clock, level);
        smooth(clock, level);
    }
}

/// A cycle of geometric multigrid on a box of `n` unknowns whose layers are divided among ranks, with those of others
/// beside them: two smoothing steps down and up on each level.
fn layers_of_patches(clock: &mut Clock<'_>, n: f64) {
    let ranks = clock.part.n_ranks as f64;
    let (mut unknowns, mut n_layers) = (n, n.cbrt() / DEGREE);
    let mut levels = Vec::new();
    loop {
        let is_small = unknowns <= FEW_ROWS || unknowns * ranks <= SHARE * n && unknowns < n;
        let is_thin = n_layers < ranks || n_layers / ranks + LAYERS_OF_OTHERS > PART * n_layers;
        if is_small || ranks > 1.0 && is_thin {
            break;
        }
        let with_others = if ranks > 1.0 { LAYERS_OF_OTHERS * unknowns / n_layers } else { 0.0 };
        levels.push((unknowns / n, unknowns / ranks + with_others));
        (unknowns, n_layers) = (unknowns / 8.0, n_layers / 2.0);
    }
    let smooth = |clock: &mut Clock<'_>, (share, of_rank): (f64, f64)| {
        for _ in 0..2 {
            // Two layers of values.
            clock.exchange(share, 8.0, 0.0);
            clock.work(0.25 * PATCH_BYTES * of_rank);
        }
    };
    levels.iter().for_each(|level| smooth(clock, *level));
    // Every rank solves what is collected; levels below it are a seventh of its work.
    clock.gather(unknowns);
    clock.work(8.0 / 7.0 * PATCH_BYTES * unknowns);
    levels.iter().rev().for_each(|level| smooth(clock, *level));
}
