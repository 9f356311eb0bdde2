//! Batches of block tridiagonal systems.

use femtile::device::{Buffer, Scalar};
use femtile::linalg::LinalgError;
use femtile::tridiagonal::block::{
    BlockBands, BlockFailure, BlockOrder, BlockOutcome, BlockShape, BlockTridiagonal, BlockTridiagonalConfig,
    BlockTridiagonalKernels,
};
use femtile::tridiagonal::{Algorithm, Stability};

use super::problems::Random;
use super::vector::nan;

/// Numbers of systems and of block rows: an emulator takes a thousand times as long as a processor.
#[derive(Debug, Clone, Copy)]
pub struct BlockScope {
    /// Block rows and systems.
    pub sizes: &'static [(usize, usize)],
    /// Sizes of blocks, but for the main case, which is tried with all: on a GPU each is a program to be compiled.
    pub blocks: &'static [usize],
}

/// Sizes that no lane width, warp or chunk divides evenly, and those next to them.
pub const FULL_BLOCKS: BlockScope = BlockScope {
    sizes: &[(1, 1), (1, 33), (2, 31), (3, 1), (5, 8), (7, 33), (17, 5), (127, 2)],
    blocks: &ALL_BLOCKS,
};

const ALL_BLOCKS: [usize; 9] = [2, 3, 4, 5, 6, 7, 8, 9, 10];

/// The same for an emulator.
pub const SMALL_BLOCKS: BlockScope = BlockScope { sizes: &[(1, 1), (2, 17), (5, 35)], blocks: &[3] };

/// A device that solves block tridiagonal systems in both precisions.
pub trait BlockDevice: BlockTridiagonalKernels<f64> + BlockTridiagonalKernels<f32> {}

impl<D: BlockTridiagonalKernels<f64> + BlockTridiagonalKernels<f32>> BlockDevice for D {}

/// Instantiates the checks of block tridiagonal systems as tests, for the devices that `$devices()` gives.
#[macro_export]
macro_rules! block_tridiagonal {
    ($devices:path, $scope:expr) => {
        $crate::checks! { $devices, $scope;
            block_tridiagonal: block_systems_are_solved_to_rounding,
                pivoting_solves_blocks_that_plain_elimination_cannot,
                systems_whose_pivot_vanishes_are_named_and_the_others_solved,
                entries_that_are_not_finite_fail_their_system_alone,
                solving_in_place_gives_the_same_bits, unusable_block_systems_are_refused,
                batches_without_blocks_are_left_alone;
        }
    };
}

/// A batch on the host.
#[derive(Debug, Clone)]
struct Batch<T> {
    shape: BlockShape,
    bands: [Vec<T>; 3],
    d: Vec<T>,
}

impl<T: Scalar> Batch<T> {
    /// Random blocks, of which `weight` is added to the diagonal; what is not to be used is NaN.
    fn random(shape: BlockShape, weight: f64, seed: usize) -> Self {
        let mut random = Random::new(seed as u64 + 1);
        let m = shape.block;
        let mut bands = [0; 3].map(|_| random.vector::<T>(shape.band_len()));
        for system in 0..shape.n_systems {
            for row in 0..shape.n_rows {
                let place = shape.place(row, system) * m * m;
                for k in 0..m {
                    bands[1][place + k * (m + 1)] += T::from_f64(weight);
                }
                let unused = [(0, row == 0), (2, row + 1 == shape.n_rows)];
                for (band, _) in unused.into_iter().filter(|(_, is_unused)| *is_unused) {
                    bands[band][place..place + m * m].fill(T::from_f64(f64::NAN));
                }
            }
        }
        let d = random.vector(shape.vector_len());
        Self { shape, bands, d }
    }

    fn diagonal_block(&mut self, row: usize, system: usize) -> &mut [T] {
        let (m, place) = (self.shape.block, self.shape.place(row, system));
        &mut self.bands[1][place * m * m..(place + 1) * m * m]
    }

    fn solve<D: BlockTridiagonalKernels<T>>(
        &self,
        device: &D,
        config: BlockTridiagonalConfig,
    ) -> (Vec<T>, BlockOutcome) {
        let mut solver = BlockTridiagonal::new(device, self.shape, config).unwrap();
        let [lower, diagonal, upper] = self.bands.each_ref().map(|x| Buffer::from_host(device, x).unwrap());
        let bands = BlockBands { lower: &lower, diagonal: &diagonal, upper: &upper };
        let d = Buffer::from_host(device, &self.d).unwrap();
        let mut u = nan(device, self.d.len());
        let outcome = solver.solve(&mut u, bands, &d).unwrap();
        assert_eq!(outcome.is_solved(), solver.outcome().unwrap() == outcome, "failures are reported once");
        (u.to_host().unwrap(), outcome)
    }

    /// Largest residual of a system over $‖A‖ ‖u‖ + ‖d‖$, all in the maximum norm.
    ///
    /// Residuals are summed in twice the precision of f64.
    fn backward_error(&self, u: &[T], system: usize) -> f64 {
        let (shape, m) = (self.shape, self.shape.block);
        let (mut residual, mut norm, mut largest_u, mut largest_d) = (0.0_f64, 0.0_f64, 0.0_f64, 0.0_f64);
        for row in 0..shape.n_rows {
            let place = shape.place(row, system);
            let neighbours = [
                (0, row.checked_sub(1)),
                (1, Some(row)),
                (2, Some(row + 1).filter(|&row| row < shape.n_rows)),
            ];
            for i in 0..m {
                let d = self.d[place * m + i].to_f64();
                let (mut sum, mut row_norm) = (Double::from(d), 0.0);
                for (band, other) in neighbours {
                    let Some(other) = other else { continue };
                    for j in 0..m {
                        let entry = self.bands[band][(place * m + i) * m + j];
                        sum = sum.minus_product(entry, u[shape.place(other, system) * m + j]);
                        row_norm += entry.to_f64().abs();
                    }
                }
                let found = u[place * m + i].to_f64();
                assert!(found.is_finite(), "entry {i} of row {row} of system {system} is {found}");
                residual = residual.max(sum.value().abs());
                norm = norm.max(row_norm);
                largest_u = largest_u.max(found.abs());
                largest_d = largest_d.max(d.abs());
            }
        }
        residual / (norm * largest_u + largest_d)
    }

    fn assert_solved(&self, u: &[T], systems: impl Iterator<Item = usize>, what: &str) {
        for system in systems {
            let error = self.backward_error(u, system) / T::EPSILON.to_f64();
            assert!(error <= 20.0, "{what}, {:?}, system {system}: {error} ε", self.shape);
        }
    }

    fn is_nan(&self, u: &[T], system: usize) -> bool {
        let m = self.shape.block;
        let places = (0..self.shape.n_rows).map(|row| self.shape.place(row, system) * m);
        places.flat_map(|place| &u[place..place + m]).all(|u| u.to_f64().is_nan())
    }
}

/// A sum of two f64 whose digits do not overlap.
#[derive(Debug, Clone, Copy)]
struct Double(f64, f64);

impl Double {
    fn from(value: f64) -> Self {
        Self(value, 0.0)
    }

    fn value(self) -> f64 {
        self.0 + self.1
    }

    /// Knuth's exact sum of two numbers.
    fn plus(self, term: f64) -> Self {
        let sum = self.0 + term;
        let part = sum - self.0;
        Self(sum, self.1 + ((self.0 - (sum - part)) + (term - part)))
    }

    /// Products of two f32 are exact in f64 and add no rounding.
    fn minus_product<T: Scalar>(self, x: T, y: T) -> Self {
        let (x, y) = (x.to_f64(), y.to_f64());
        let product = -x * y;
        if size_of::<T>() == size_of::<f32>() {
            return Self(self.0 + product, 0.0);
        }
        self.plus(product).plus((-x).mul_add(y, -product))
    }
}

/// Every algorithm that the device has for blocks.
fn algorithms<D: BlockDevice>(device: &D) -> Vec<Algorithm> {
    let shape = BlockShape { block: 2, n_rows: 2, n_systems: 1, order: BlockOrder::Interleaved };
    let has = |&algorithm: &Algorithm| {
        let config = BlockTridiagonalConfig { algorithm, ..Default::default() };
        BlockTridiagonal::<f64, D>::new(device, shape, config).is_ok()
    };
    Algorithm::ALL.into_iter().filter(|&algorithm| algorithm != Algorithm::Auto).filter(has).collect()
}

fn shapes(blocks: &[usize], sizes: &[(usize, usize)]) -> Vec<BlockShape> {
    let orders = |&block: &usize| BlockOrder::ALL.map(|order| (block, order));
    let sized = |(block, order)| {
        sizes.iter().map(move |&(n_rows, n_systems)| BlockShape { block, n_rows, n_systems, order })
    };
    blocks.iter().flat_map(orders).flat_map(sized).collect()
}

fn configs<D: BlockDevice>(device: &D, stability: Stability) -> Vec<BlockTridiagonalConfig> {
    algorithms(device).into_iter().map(|algorithm| BlockTridiagonalConfig { algorithm, stability }).collect()
}

fn solves<T: Scalar, D: BlockDevice + BlockTridiagonalKernels<T>>(device: &D, scope: &BlockScope) {
    for stability in [Stability::Unpivoted, Stability::PartialPivoting] {
        for config in configs(device, stability) {
            let is_main = T::NAME == "f64" && stability == Stability::Unpivoted;
            let is_pcr = config.algorithm == Algorithm::Pcr;
            let blocks = if is_main && !is_pcr { &ALL_BLOCKS } else { scope.blocks };
            // Cyclic reduction has one body for all blocks on a host: fewer of them show as much.
            let step = if is_pcr { 3 } else { 1 };
            let shapes = shapes(blocks, scope.sizes);
            for (seed, shape) in shapes.into_iter().enumerate().step_by(step) {
                let batch = Batch::<T>::random(shape, 3.0 * shape.block as f64, seed);
                let (u, outcome) = batch.solve(device, config);
                assert!(outcome.is_solved(), "{config:?}, {shape:?}: {outcome}");
                batch.assert_solved(&u, 0..shape.n_systems, &format!("{config:?}"));
            }
        }
    }
}

/// Systems with dominant diagonal blocks of every size, in both orders, by every algorithm, are solved to 20 ε.
pub fn block_systems_are_solved_to_rounding<D: BlockDevice>(device: &D, scope: &BlockScope) {
    solves::<f64, D>(device, scope);
    solves::<f32, D>(device, scope);
}

fn solves_permuted<T: Scalar, D: BlockDevice + BlockTridiagonalKernels<T>>(device: &D, scope: &BlockScope) {
    for (seed, shape) in shapes(scope.blocks, &[(3, 11)]).into_iter().enumerate() {
        let mut batch = Batch::<T>::random(shape, 3.0 * shape.block as f64, seed);
        // The last row of each diagonal block comes first: its diagonal is as small as any entry, here zero.
        for system in 0..shape.n_systems {
            for row in 0..shape.n_rows {
                let (m, entries) = (shape.block, shape.block * shape.block);
                let place = shape.place(row, system);
                for band in &mut batch.bands {
                    band[place * entries..(place + 1) * entries].rotate_right(m);
                }
                batch.d[place * m..(place + 1) * m].rotate_right(1);
                batch.diagonal_block(row, system)[0] = T::ZERO;
            }
        }
        for algorithm in algorithms(device) {
            let config = BlockTridiagonalConfig { algorithm, stability: Stability::PartialPivoting };
            let (u, outcome) = batch.solve(device, config);
            assert!(outcome.is_solved(), "{config:?}, {shape:?}: {outcome}");
            batch.assert_solved(&u, 0..shape.n_systems, &format!("{config:?}"));
            let config = BlockTridiagonalConfig { algorithm, stability: Stability::Unpivoted };
            let first = Some(BlockFailure { system: 0, row: 0 });
            let expected = BlockOutcome { n_failed: shape.n_systems as u64, first };
            assert_eq!(batch.solve(device, config).1, expected, "{config:?}, {shape:?}");
        }
    }
}

/// Rows exchanged within every block are no matter to the pivoted solver, and stop the other.
pub fn pivoting_solves_blocks_that_plain_elimination_cannot<D: BlockDevice>(device: &D, scope: &BlockScope) {
    solves_permuted::<f64, D>(device, scope);
    solves_permuted::<f32, D>(device, scope);
}

/// A singular first, middle or last block fails its system; the first of them is named.
pub fn systems_whose_pivot_vanishes_are_named_and_the_others_solved<D: BlockDevice>(
    device: &D,
    scope: &BlockScope,
) {
    for config in [Stability::Unpivoted, Stability::PartialPivoting].map(|s| configs(device, s)).concat() {
        for (seed, shape) in shapes(scope.blocks, &[(5, 35)]).into_iter().enumerate() {
            let mut batch = Batch::<f64>::random(shape, 3.0 * shape.block as f64, seed);
            // Where nothing couples to a row, its pivots are those of its block: here of a row of zeros.
            let singular = [(33, 0), (9, 4), (20, 2)];
            for (system, row) in singular {
                let m = shape.block;
                batch.diagonal_block(row, system)[m * (m - 1)..].fill(0.0);
                for (band, row) in [(0, row), (2, row), (2, row.max(1) - 1), (0, (row + 1).min(4))] {
                    let place = shape.place(row, system) * m * m;
                    batch.bands[band][place..place + m * m].fill(0.0);
                }
            }
            let (u, outcome) = batch.solve(device, config);
            let first = Some(BlockFailure { system: 9, row: 4 });
            assert_eq!(outcome, BlockOutcome { n_failed: 3, first }, "{config:?}, {shape:?}");
            let (failed, solved): (Vec<usize>, Vec<usize>) =
                (0..shape.n_systems).partition(|system| singular.iter().any(|(failed, _)| failed == system));
            assert!(failed.into_iter().all(|system| batch.is_nan(&u, system)), "{config:?}, {shape:?}");
            batch.assert_solved(&u, solved.into_iter(), &format!("{config:?}"));
        }
    }
}

/// An infinite or missing number in a band or a right side fails that system and no other.
pub fn entries_that_are_not_finite_fail_their_system_alone<D: BlockDevice>(device: &D, scope: &BlockScope) {
    for config in configs(device, Stability::Unpivoted) {
        for (seed, shape) in shapes(scope.blocks, &[(4, 19)]).into_iter().enumerate() {
            for (array, bad) in [(0, f64::NAN), (1, f64::INFINITY), (2, f64::NEG_INFINITY), (3, f64::NAN)] {
                let mut batch = Batch::<f64>::random(shape, 3.0 * shape.block as f64, seed);
                let (m, place) = (shape.block, shape.place(2, 11));
                match array {
                    3 => batch.d[place * m] = bad,
                    band => batch.bands[band][place * m * m] = bad,
                }
                let (u, outcome) = batch.solve(device, config);
                assert!(
                    outcome.n_failed == 1 && outcome.first.is_some_and(|first| first.system == 11),
                    "{outcome:?}"
                );
                assert!(batch.is_nan(&u, 11));
                let others = (0..shape.n_systems).filter(|&system| system != 11);
                batch.assert_solved(&u, others, &format!("{config:?}"));
            }
        }
    }
}

/// The right side may stand where the solution goes.
pub fn solving_in_place_gives_the_same_bits<D: BlockDevice>(device: &D, scope: &BlockScope) {
    for config in configs(device, Stability::Unpivoted) {
        for (seed, shape) in shapes(scope.blocks, &[(4, 19)]).into_iter().enumerate() {
            let mut batch = Batch::<f64>::random(shape, 3.0 * shape.block as f64, seed);
            batch.diagonal_block(0, 18).fill(0.0);
            let (expected, outcome) = batch.solve(device, config);
            let mut solver = BlockTridiagonal::new(device, shape, config).unwrap();
            let [lower, diagonal, upper] =
                batch.bands.each_ref().map(|x| Buffer::from_host(device, x).unwrap());
            let bands = BlockBands { lower: &lower, diagonal: &diagonal, upper: &upper };
            for _ in 0..2 {
                let mut u = Buffer::from_host(device, &batch.d).unwrap();
                assert_eq!(solver.solve_in_place(&mut u, bands).unwrap(), outcome);
                let bits = |values: &[f64]| -> Vec<u64> { values.iter().map(|x| x.to_bits()).collect() };
                let found = u.to_host().unwrap();
                let solved = shape.n_systems - 1;
                for row in 0..shape.n_rows {
                    for system in 0..solved {
                        let place = shape.place(row, system) * shape.block;
                        let values = place..place + shape.block;
                        assert_eq!(bits(&found[values.clone()]), bits(&expected[values]), "{config:?}");
                    }
                }
                assert!(batch.is_nan(&found, solved));
            }
        }
    }
}

/// Arrays of the wrong length and blocks of one or eleven rows are errors that say what was expected.
pub fn unusable_block_systems_are_refused<D: BlockDevice>(device: &D, _: &BlockScope) {
    let shape = BlockShape { block: 2, n_rows: 3, n_systems: 5, order: BlockOrder::Interleaved };
    let new = |shape| BlockTridiagonal::<f64, D>::new(device, shape, Default::default());
    for block in [0, 1, 11, usize::MAX] {
        let error = new(BlockShape { block, ..shape }).unwrap_err();
        assert!(matches!(error, LinalgError::Setting { field: "block", .. }), "{error}");
    }
    assert!(new(BlockShape { n_systems: usize::MAX / 4, ..shape }).is_err());
    let config = BlockTridiagonalConfig { algorithm: Algorithm::Hybrid, ..Default::default() };
    assert!(BlockTridiagonal::<f64, D>::new(device, shape, config).is_err());

    let mut solver = new(shape).unwrap();
    let zeros = |n| Buffer::<f64, D>::zeros(device, n).unwrap();
    let (band, short_band, d, short_d) = (zeros(60), zeros(59), zeros(30), zeros(29));
    let mut refused = |u: usize, d: &Buffer<f64, D>, bands: BlockBands<'_, f64, D>| {
        let error = solver.solve(&mut zeros(u), bands, d).unwrap_err();
        assert!(matches!(error, LinalgError::Length { .. }), "{error}");
    };
    let bands = BlockBands { lower: &band, diagonal: &band, upper: &band };
    refused(31, &d, bands);
    refused(30, &short_d, bands);
    refused(30, &d, BlockBands { lower: &short_band, ..bands });
    refused(30, &d, BlockBands { diagonal: &short_band, ..bands });
    refused(30, &d, BlockBands { upper: &short_band, ..bands });
}

/// No systems, or systems without rows, are solved at once.
pub fn batches_without_blocks_are_left_alone<D: BlockDevice>(device: &D, _: &BlockScope) {
    for (n_rows, n_systems) in [(0, 0), (0, 5), (5, 0)] {
        let shape = BlockShape { block: 3, n_rows, n_systems, order: BlockOrder::Interleaved };
        let (u, outcome) = Batch::<f64>::random(shape, 1.0, 1).solve(device, Default::default());
        assert!(u.is_empty() && outcome.is_solved());
    }
}
