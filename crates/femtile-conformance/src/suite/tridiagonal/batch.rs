//! Batches of systems on the host, and how well a solution fulfils them.

use femtile::device::{Buffer, Scalar};
use femtile::linalg::LinalgError;
use femtile::tridiagonal::{
    Algorithm, Bands, BatchLayout, Ends, Tridiagonal, TridiagonalConfig, TridiagonalKernels,
    TridiagonalOutcome,
};

use crate::suite::problems::Random;

/// The value between the entries of an array with gaps.
const GAP: f64 = 77.0;

/// A batch of systems along one axis of an array.
#[derive(Debug, Clone)]
pub struct Batch<T> {
    /// Entries along each axis.
    pub shape: Vec<usize>,
    /// Strides of the right side and of the solution.
    pub strides: Vec<usize>,
    /// Strides of the bands.
    pub band_strides: Vec<usize>,
    /// The axis along which systems stand.
    pub axis: usize,
    /// Lower, diagonal and upper band.
    pub bands: [Vec<T>; 3],
    /// The right sides.
    pub d: Vec<T>,
}

/// Row-major strides.
pub fn row_major(shape: &[usize]) -> Vec<usize> {
    BatchLayout::contiguous(shape).unwrap().strides().to_vec()
}

impl<T: Scalar> Batch<T> {
    /// Diagonally dominant systems, their diagonals of either sign; what is not to be read is not a number.
    pub fn dominant(
        shape: &[usize],
        strides: &[usize],
        axis: usize,
        ends: Ends,
        random: &mut Random,
    ) -> Self {
        let mut batch = Self::filled(shape, strides, strides, axis, random, |_, random| {
            let (a, c) = (random.unit(), random.unit());
            let b = a.abs() + c.abs() + 0.05 + 0.2 * random.unit().abs();
            [a, if random.unit() < 0.0 { -b } else { b }, c]
        });
        if ends == Ends::Open {
            batch.poison_ends();
        }
        batch
    }

    /// Bands from `row(i)`, given random numbers; right sides in [−1, 1).
    pub fn filled(
        shape: &[usize],
        strides: &[usize],
        band_strides: &[usize],
        axis: usize,
        random: &mut Random,
        mut row: impl FnMut(usize, &mut Random) -> [f64; 3],
    ) -> Self {
        let length = |strides| BatchLayout::repeating(shape, strides).unwrap().required_len();
        let nan = vec![T::from_f64(f64::NAN); length(band_strides)];
        let mut batch = Self {
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            band_strides: band_strides.to_vec(),
            axis,
            bands: [nan.clone(), nan.clone(), nan],
            d: vec![T::from_f64(GAP); length(strides)],
        };
        for (start, band_start) in batch.lines() {
            for i in 0..shape[axis] {
                let values = row(i, random);
                for (band, value) in batch.bands.iter_mut().zip(values) {
                    band[band_start + i * band_strides[axis]] = T::from_f64(value);
                }
                batch.d[start + i * strides[axis]] = T::from_f64(random.unit());
            }
        }
        batch
    }

    /// Returns the offsets of each line in the right side and in the bands; row-major over the other axes.
    pub fn lines(&self) -> Vec<(usize, usize)> {
        let mut lines = vec![(0, 0)];
        for k in (0..self.shape.len()).filter(|&k| k != self.axis) {
            let step = |i| (i * self.strides[k], i * self.band_strides[k]);
            let along = |&(start, band): &(usize, usize)| {
                (0..self.shape[k]).map(step).map(move |(s, b)| (start + s, band + b)).collect::<Vec<_>>()
            };
            lines = lines.iter().flat_map(along).collect();
        }
        lines
    }

    /// Makes not-a-numbers of the entries that stand outside of open systems.
    pub fn poison_ends(&mut self) {
        let (n, stride) = (self.shape[self.axis], self.band_strides[self.axis]);
        for (_, band_start) in self.lines().into_iter().filter(|_| n > 0 && stride > 0) {
            self.bands[0][band_start] = T::from_f64(f64::NAN);
            self.bands[2][band_start + (n - 1) * stride] = T::from_f64(f64::NAN);
        }
    }

    /// The largest $|r_i| / (|A||u| + |d|)_i$ over the lines that `counts` takes, residuals in twice the precision.
    pub fn backward_error(&self, u: &[T], ends: Ends, counts: impl Fn(usize) -> bool) -> f64 {
        self.error_relative_to(u, ends, counts, |x, _| x.abs())
    }

    /// The largest $|r_i| / (|A| e \lVert u \rVert_∞ + |d|)_i$: what elimination with exchanged rows can promise.
    pub fn backward_error_of_rows(&self, u: &[T], ends: Ends) -> f64 {
        self.error_relative_to(u, ends, |_| true, |_, largest| largest)
    }

    /// The largest residual over $|A| s + |d|$ with $s$ from a value and the largest of its line.
    fn error_relative_to(
        &self,
        u: &[T],
        ends: Ends,
        counts: impl Fn(usize) -> bool,
        size: impl Fn(f64, f64) -> f64,
    ) -> f64 {
        let (n, stride, band_stride) =
            (self.shape[self.axis], self.strides[self.axis], self.band_strides[self.axis]);
        let mut worst = 0.0_f64;
        for (start, band_start) in self.lines().into_iter().filter(|&(start, _)| counts(start)) {
            let value = |j: usize| u[start + j * stride].to_f64();
            let largest = (0..n).map(|j| value(j).abs()).fold(0.0, f64::max);
            for i in 0..n {
                let band = |k: usize| self.bands[k][band_start + i * band_stride].to_f64();
                let open = ends == Ends::Open;
                let before = if open && i == 0 { (0.0, 0.0) } else { (band(0), value((i + n - 1) % n)) };
                let behind = if open && i + 1 == n { (0.0, 0.0) } else { (band(2), value((i + 1) % n)) };
                let products = [before, (band(1), value(i)), behind];
                let d = self.d[start + i * stride].to_f64();
                let scale = products.iter().map(|(a, x)| a.abs() * size(*x, largest)).sum::<f64>() + d.abs();
                let error = if scale == 0.0 { 0.0 } else { residual(products, d).abs() / scale };
                // A value that is not a number must not be lost in the maximum.
                worst = if error <= worst { worst } else { error };
                if worst.is_nan() {
                    return f64::INFINITY;
                }
            }
        }
        worst
    }

    /// The solution in place and the outcome; none where the device lacks the algorithm for such a batch.
    ///
    /// Solves into another array as well and holds both to the same bits; gaps must stay as they were.
    pub fn solve<D: TridiagonalKernels<T>>(
        &self,
        device: &D,
        config: TridiagonalConfig,
    ) -> Option<(Vec<T>, TridiagonalOutcome)> {
        let [lower, diagonal, upper] =
            self.bands.each_ref().map(|band| Buffer::from_host(device, band).unwrap());
        let bands = Bands::Arrays { lower: &lower, diagonal: &diagonal, upper: &upper };
        self.solve_with(device, config, bands)
    }

    /// [`Batch::solve`] with bands that are given.
    pub fn solve_with<D: TridiagonalKernels<T>>(
        &self,
        device: &D,
        config: TridiagonalConfig,
        bands: Bands<'_, T, D>,
    ) -> Option<(Vec<T>, TridiagonalOutcome)> {
        let layout = BatchLayout::with_strides(&self.shape, &self.strides).unwrap();
        let mut solver = match Tridiagonal::new(device, &layout, self.axis, config) {
            Ok(solver) => solver,
            Err(error) => return refused(config, &error),
        };
        if self.band_strides != self.strides {
            solver = solver.with_band_strides(&self.band_strides).unwrap();
        }
        let mut u = Buffer::from_host(device, &self.d).unwrap();
        let outcome = match solver.solve_in_place(&mut u, bands) {
            Ok(outcome) => outcome,
            Err(error) => return refused(config, &error),
        };
        let u = u.to_host().unwrap();

        let mut poisoned = self.d.clone();
        let mut is_gap = vec![true; poisoned.len()];
        for (start, _) in self.lines() {
            for i in 0..self.shape[self.axis] {
                let place = start + i * self.strides[self.axis];
                (poisoned[place], is_gap[place]) = (T::from_f64(f64::NAN), false);
            }
        }
        let d = Buffer::from_host(device, &self.d).unwrap();
        let mut other = Buffer::from_host(device, &poisoned).unwrap();
        assert_eq!(solver.solve(&mut other, bands, &d).unwrap(), outcome);
        let other = other.to_host().unwrap();
        for (place, (&x, &y)) in u.iter().zip(&other).enumerate() {
            assert!(
                x == y || !x.is_finite() && !y.is_finite(),
                "{:?}, axis {}: in place {x}, out of place {y} at {place}",
                self.shape,
                self.axis
            );
            assert!(!is_gap[place] || x == T::from_f64(GAP), "{x} was written into a gap at {place}");
        }
        Some((u, outcome))
    }
}

/// $d - \sum_k x_k y_k$ with the rounding error of every product and sum added.
fn residual(products: [(f64, f64); 3], d: f64) -> f64 {
    let (mut high, mut low) = (d, 0.0);
    for (x, y) in products {
        let product = -(x * y);
        let sum = high + product;
        let part = sum - high;
        low += (-x).mul_add(y, -product) + ((high - (sum - part)) + (product - part));
        high = sum;
    }
    high + low
}

/// Nothing where an algorithm other than the default refuses a batch, which all but `thomas` may.
fn refused<R>(config: TridiagonalConfig, error: &LinalgError) -> Option<R> {
    let may_refuse = !matches!(config.algorithm, Algorithm::Auto | Algorithm::Thomas);
    assert!(
        may_refuse && matches!(error, LinalgError::Setting { field: "algorithm", .. }),
        "{config:?}: {error}"
    );
    None
}
