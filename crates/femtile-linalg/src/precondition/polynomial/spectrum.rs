//! The largest eigenvalue of $D^{-1} A$, by Lanczos' method.

use femtile_device::{Buffer, Scalar, parallel};

use crate::vector::VectorKernels;
use crate::{LinalgError, LinearOperator, need};

/// Factor on an estimate of the largest eigenvalue, which is a lower bound.
const MARGIN: f64 = 1.05;
/// Ratio of a new Lanczos vector to its product below which the iteration ends.
const NOTHING: f64 = 1e-6;
/// Rows that a thread starts at least.
const ROWS: usize = 1 << 14;

/// Estimates $\lambda_\max(D^{-1} A)$ by Lanczos iteration, with a margin on the lower bound; 1 for an empty operator.
///
/// Starts from a fixed pseudorandom vector, scaled by $D^{-1/2}$ so that every row has about the same weight.
/// So the estimate does not depend on the scaling of rows, such as those of Dirichlet values beside a large
/// or a small coefficient.
///
/// # Cost
/// A product per step, and some ten passes over vectors.
/// # Errors
/// Errors of the operator; [`LinalgError::Setting`] if it is not positive semidefinite.
/// # Source
/// `[golub2013]`, section 10.1.
pub fn largest_eigenvalue<T: Scalar, D: VectorKernels<T>>(
    a: &dyn LinearOperator<T, D>,
    inverse_diagonal: &Buffer<T, D>,
    steps: usize,
) -> Result<f64, LinalgError> {
    let start = start_of_rows(&inverse_diagonal.host_view()?, 0);
    largest_preconditioned(a, start, |v, r| a.device().scale_by(v, inverse_diagonal, r), steps)
}

/// A start in which every row has about the same part, by the reciprocals of the diagonal; `first` is the number of the first
/// row, so that the starts of ranks differ.
pub fn start_of_rows<T: Scalar>(inverse_diagonal: &[T], first: u64) -> Vec<T> {
    let root = |inverse: T| T::from_f64(inverse.to_f64().sqrt().recip());
    let of_row = |i: usize| start_of_lanczos::<T>(first + i as u64) * root(inverse_diagonal[i]);
    parallel::map(inverse_diagonal.len(), ROWS, of_row)
}

/// $\lambda_\max(M^{-1} A)$ as above, from $M^{-1}$ of `start` on. `solve` applies $M^{-1}$ to its second
/// argument; it is symmetric and positive semidefinite.
///
/// # Cost
/// A product and a call of `solve` per step.
/// # Errors
/// As [`largest_eigenvalue`], and errors of `solve`.
pub fn largest_preconditioned<T: Scalar, D: VectorKernels<T>>(
    a: &dyn LinearOperator<T, D>,
    start: Vec<T>,
    solve: impl Fn(&mut Buffer<T, D>, &Buffer<T, D>) -> Result<(), LinalgError>,
    steps: usize,
) -> Result<f64, LinalgError> {
    largest_from(a, Buffer::from_vec(a.device(), start)?, solve, steps)
}

/// As [`largest_preconditioned`], from a vector on the device.
///
/// # Errors
/// As [`largest_preconditioned`].
pub fn largest_from<T: Scalar, D: VectorKernels<T>>(
    a: &dyn LinearOperator<T, D>,
    start: Buffer<T, D>,
    solve: impl Fn(&mut Buffer<T, D>, &Buffer<T, D>) -> Result<(), LinalgError>,
    steps: usize,
) -> Result<f64, LinalgError> {
    largest_of_ranks(&|_| Ok(()), a, start, solve, steps)
}

/// Replaces numbers by their sums over all ranks.
pub type GlobalSums<'a> = dyn Fn(&mut [f64]) -> Result<(), LinalgError> + 'a;

/// As [`largest_from`], for an operator whose rows are divided among ranks. All of them call it.
///
/// # Errors
/// As [`largest_preconditioned`], and errors of `sums`.
pub fn largest_of_ranks<T: Scalar, D: VectorKernels<T>>(
    sums: &GlobalSums<'_>,
    a: &dyn LinearOperator<T, D>,
    start: Buffer<T, D>,
    solve: impl Fn(&mut Buffer<T, D>, &Buffer<T, D>) -> Result<(), LinalgError>,
    steps: usize,
) -> Result<f64, LinalgError> {
    let (device, n) = (a.device(), a.n_rows());
    let dot = |x: &Buffer<T, D>, y: &Buffer<T, D>| -> Result<f64, LinalgError> {
        let mut sum = [device.dot(x, y)?];
        sums(&mut sum)?;
        Ok(sum[0])
    };
    // M v, orthogonal in the scalar product with M^(-1), and v, orthogonal in that with M.
    need("start", n, start.len())?;
    let mut mv = start;
    let zeros = || Buffer::<T, D>::zeros(device, n);
    let (mut v, mut before, mut w) = (zeros()?, zeros()?, zeros()?);
    let (mut diagonal, mut beside) = (Vec::new(), Vec::new());
    solve(&mut v, &mv)?;
    let mut length = dot(&v, &mv)?.sqrt();
    let mut n_rows = [n as f64];
    sums(&mut n_rows)?;
    let steps = if length > 0.0 { steps.min(n_rows[0] as usize) } else { 0 };
    for _ in 0..steps {
        let beta = beside.last().copied().unwrap_or(0.0);
        for x in [&mut v, &mut mv] {
            // Nothing is added: all of it is scaled.
            device.axpby(x, T::ZERO, &w, T::from_f64(1.0 / length))?;
        }
        a.apply(&mut w, &v)?;
        let alpha = dot(&v, &w)?;
        if !(alpha >= 0.0 && alpha.is_finite()) {
            let message = format!(
                "the operator has the energy {alpha:e} for a vector of unit length: it is not positive definite"
            );
            return Err(LinalgError::Setting { field: "operator", message });
        }
        device.axpby(&mut w, T::from_f64(-beta), &before, T::ONE)?;
        device.axpby(&mut w, T::from_f64(-alpha), &mv, T::ONE)?;
        solve(&mut v, &w)?;
        length = dot(&v, &w)?.max(0.0).sqrt();
        diagonal.push(alpha);
        if length <= NOTHING * alpha {
            break;
        }
        beside.push(length);
        std::mem::swap(&mut before, &mut mv);
        std::mem::swap(&mut mv, &mut w);
    }
    Ok(if diagonal.is_empty() { 1.0 } else { largest_of_lanczos(&diagonal, &beside) })
}

/// A number between 0.5 and 1.5 with any sign, the same in every run.
pub fn start_of_lanczos<T: Scalar>(i: u64) -> T {
    let mixed = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let size = 0.5 + (mixed >> 40) as f64 / (1_u64 << 24) as f64;
    T::from_f64(if mixed >> 39 & 1 == 0 { size } else { -size })
}

/// Returns the largest eigenvalue of the tridiagonal Lanczos matrix, given by its diagonal and off-diagonal, with a margin.
pub fn largest_of_lanczos(diagonal: &[f64], beside: &[f64]) -> f64 {
    MARGIN * largest_of_tridiagonal(diagonal, beside)
}

/// By bisection with Sturm sequences.
fn largest_of_tridiagonal(diagonal: &[f64], beside: &[f64]) -> f64 {
    let at = |i: usize| beside.get(i).copied().unwrap_or(0.0);
    let radius = |i: usize| at(i) + if i > 0 { at(i - 1) } else { 0.0 };
    let mut high = diagonal.iter().enumerate().map(|(i, d)| d + radius(i)).fold(f64::MIN, f64::max);
    let mut low = diagonal.iter().copied().fold(f64::MIN, f64::max);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        let mut pivot = 1.0;
        let is_above = diagonal.iter().enumerate().all(|(i, d)| {
            let square = if i > 0 { at(i - 1) * at(i - 1) } else { 0.0 };
            pivot = middle - d - square / pivot;
            pivot > 0.0
        });
        if is_above {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}
