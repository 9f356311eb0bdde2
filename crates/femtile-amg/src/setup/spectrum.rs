//! The diagonal that smoothers divide by, and the largest eigenvalue of $D^{-1} A$ with it.

use femtile_device::{Scalar, parallel};
use femtile_linalg::LinalgError;
use femtile_linalg::precondition::polynomial::{largest_of_lanczos, start_of_lanczos};

use super::rank_matrix::{RankMatrix, maxima};
use super::rows::{RowAccess, Rows};

/// Steps of Lanczos' method, which find the largest eigenvalue within some percent, unless it belongs to few rows.
pub(crate) const STEPS: usize = 4;
/// Steps for nodes of several rows, whose spectra end in few eigenvalues of badly shaped cells or of jumps of the stiffness: where it is
/// random from cell to cell, four steps find 0.7 of the largest one, six 0.87, ten 0.99.
const STEPS_OF_NODES: usize = 10;
/// Jacobi's damping, over the largest eigenvalue.
pub(crate) const DAMPING: f64 = 4.0 / 3.0;
/// The damping of prolongators, over the largest eigenvalue: more than 4/3, as the estimate has a margin.
pub(crate) const PROLONGED: f64 = 1.4;
/// The factor by which eigenvalues may exceed the estimate: Jacobi's method and Chebyshev polynomials for
/// $[0.15 \lambda, 1.15 \lambda]$ stay below one in magnitude up to $1.3 \lambda$.
pub(crate) const HARMLESS: f64 = 1.25;
/// Entries of a piece of a sum, independent of the number of threads.
const PIECE: usize = 4096;

/// Returns the steps of Lanczos' method for nodes of `block` rows.
pub(crate) fn n_steps(block: usize) -> usize {
    if block == 1 { STEPS } else { STEPS_OF_NODES }
}

/// The reciprocals of a diagonal D, and the largest eigenvalue of $D^{-1} A$.
#[derive(Debug, Clone)]
pub(crate) struct Scaling<T> {
    pub inverse_diagonal: Vec<T>,
    /// $\lambda$, which no eigenvalue exceeds by more than [`HARMLESS`].
    pub largest: f64,
    /// The diagonal is raised if the ratio of the absolute sum of a row to it is larger.
    pub most: f64,
}

impl<T: Scalar> Scaling<T> {
    /// Scales by the diagonal of A. It is raised in rows with a large absolute sum, such as those of flat
    /// elements, because they may belong to an eigenvalue that the estimate misses. The absolute sums of nodes of several
    /// rows are large everywhere, as entries of both signs cancel, so only rows with exceptional sums are raised there.
    ///
    /// The estimate is the maximum over the diagonal blocks of the ranks, whose eigenvalues are no larger than those of the
    /// global matrix. Collective.
    ///
    /// # Cost
    /// Four products, ten for nodes of several rows.
    /// # Source
    /// Lanczos' method: `[golub2013]`, section 10.1; row sums: `[baker2011]`, section 4.
    pub fn new(matrix: &RankMatrix<T>, diagonal: &[T], block: usize) -> Result<Self, LinalgError> {
        let a = &matrix.rows;
        let mut inverse = parallel::map(diagonal.len(), PIECE, |row| T::ONE / diagonal[row]);
        let divide = |z: &mut [T], r: &[T]| {
            parallel::for_chunks_mut(z, PIECE, |begin, z| {
                let entries = z.iter_mut().zip(&r[begin..]).zip(&inverse[begin..]);
                entries.for_each(|((z, &r), &d)| *z = d * r);
            });
        };
        let steps = n_steps(block);
        let largest = if diagonal.is_empty() { 0.0 } else { largest_eigenvalue(a, &inverse, steps, divide) };
        let sum_of = |row: usize| a.row(row).1.iter().map(|value| value.to_f64().abs()).sum::<f64>();
        let sums = parallel::map(a.n_rows(), PIECE, sum_of);
        let most = match block {
            1 => HARMLESS * largest,
            _ => most(largest, sums.iter().zip(&inverse).map(|(sum, d)| sum * d.to_f64()).collect()),
        };
        let [largest, most] = maxima(matrix.halo.comm(), [largest, most])?;
        parallel::for_chunks_mut(&mut inverse, PIECE, |begin, inverse| {
            for (inverse, sum) in inverse.iter_mut().zip(&sums[begin..]) {
                let least = T::from_f64(sum / most);
                if *inverse * least > T::ONE {
                    *inverse = T::ONE / least;
                }
            }
        });
        Ok(Self { inverse_diagonal: inverse, largest, most })
    }
}

/// Returns [`Scaling::most`] of nodes of several rows, from the ratios of the absolute sums of rows to the diagonal.
pub(crate) fn most(largest: f64, mut ratios: Vec<f64>) -> f64 {
    HARMLESS * largest.max(median(&mut ratios))
}

/// Returns the median, 0 of no values.
fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let middle = values.len() / 2;
    *values.select_nth_unstable_by(middle, f64::total_cmp).1
}

/// Returns the least diagonal entry relative to the absolute sum of its row, for a largest eigenvalue `largest`.
pub(crate) fn share(largest: f64) -> f64 {
    1.0 / (HARMLESS * largest)
}

/// Estimates $\lambda_\max(M^{-1} A)$ of the square block of the first columns from below by Lanczos' method, with a margin.
/// `solve` applies $M^{-1}$ to its second argument; M is symmetric positive definite. The start is $D^{1/2}$ times a pseudorandom
/// vector, so that every row has about the same share, also beside the much larger rows of Dirichlet values.
///
/// # Cost
/// One product and one call of `solve` per step.
pub(crate) fn largest_eigenvalue<T: Scalar>(
    a: &Rows<T>,
    inverse_diagonal: &[T],
    steps: usize,
    solve: impl Fn(&mut [T], &[T]),
) -> f64 {
    let n = a.n_rows();
    // M v, orthogonal in the scalar product with M^(-1), and v, orthogonal in that with M, in which M^(-1) A is symmetric.
    let root = |inverse: T| T::from_f64(inverse.to_f64().sqrt().recip());
    let start = |i: usize| start_of_lanczos::<T>(i as u64) * root(inverse_diagonal[i]);
    let mut mv = parallel::map(n, PIECE, start);
    // Zero in further columns.
    let mut v = vec![T::ZERO; a.n_cols()];
    let (mut before, mut w) = (vec![T::ZERO; n], vec![T::ZERO; n]);
    let (mut diagonal, mut beside) = (Vec::new(), Vec::new());
    solve(&mut v[..n], &mv);
    let mut scale = 1.0 / dot(&v[..n], &mv).sqrt();
    for _ in 0..steps.min(n) {
        let (factor, beta) = (T::from_f64(scale), T::from_f64(beside.last().copied().unwrap_or(0.0)));
        for x in [&mut v, &mut mv] {
            parallel::for_chunks_mut(x, PIECE, |_, x| x.iter_mut().for_each(|x| *x *= factor));
        }
        let alpha = sum(parallel::map_chunks_mut(&mut w, PIECE, |begin, w| {
            let mut sum = 0.0;
            for (row, (w, &before)) in (begin..).zip(w.iter_mut().zip(&before[begin..])) {
                let product = dot_of_row(a.row(row), &v);
                sum += v[row].to_f64() * product.to_f64();
                *w = product - beta * before;
            }
            sum
        }));
        let subtract = T::from_f64(alpha);
        parallel::for_chunks_mut(&mut w, PIECE, |begin, w| {
            w.iter_mut().zip(&mv[begin..]).for_each(|(w, &mv)| *w -= subtract * mv);
        });
        solve(&mut v[..n], &w);
        let length = dot(&v[..n], &w).max(0.0).sqrt();
        diagonal.push(alpha);
        if length <= 1e-6 * alpha.abs() {
            break;
        }
        beside.push(length);
        scale = 1.0 / length;
        std::mem::swap(&mut before, &mut mv);
        std::mem::swap(&mut mv, &mut w);
    }
    largest_of_lanczos(&diagonal, &beside)
}

fn dot<T: Scalar>(x: &[T], y: &[T]) -> f64 {
    sum(parallel::map_chunks(x, PIECE, |begin, x| {
        x.iter().zip(&y[begin..]).map(|(x, y)| x.to_f64() * y.to_f64()).sum()
    }))
}

/// Returns the product of a row with x, in four independent sums.
#[inline(always)]
fn dot_of_row<T: Scalar>((columns, values): (&[u32], &[T]), x: &[T]) -> T {
    let mut sums = [T::ZERO; 4];
    let (columns, more_columns) = columns.as_chunks::<4>();
    let (values, more_values) = values.as_chunks::<4>();
    for (columns, values) in columns.iter().zip(values) {
        for lane in 0..4 {
            sums[lane] += values[lane] * x[columns[lane] as usize];
        }
    }
    let rest: T =
        more_columns.iter().zip(more_values).map(|(&column, &value)| value * x[column as usize]).sum();
    sums[0] + sums[1] + (sums[2] + sums[3]) + rest
}

/// Adds the sums of pieces of fixed length in their order, so that the result does not depend on the number of threads.
fn sum(pieces: Vec<f64>) -> f64 {
    pieces.iter().sum()
}
