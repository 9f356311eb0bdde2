//! The size of rounding errors in residuals.

use femtile_comm::Comm;
use femtile_device::{Buffer, parallel};
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, LinearOperator};

/// Multiple of the machine epsilon and of the terms of a residual that its rounding error may reach.
const EXPLAINED: f64 = 4.0;

/// Rows that a thread visits at least.
const ROWS: usize = 1 << 14;

/// Returns the norm of rounding errors in a sum of terms of this norm.
pub(crate) fn of_terms(norm: f64) -> f64 {
    EXPLAINED * f64::EPSILON * norm
}

/// Returns plus and minus one in a random order that is always the same.
pub(crate) fn signs<D: VectorKernels<f64>>(device: &D, n: usize) -> Result<Buffer<f64, D>, LinalgError> {
    Ok(Buffer::from_vec(device, parallel::map(n, ROWS, sign))?)
}

/// Returns entry `i` of [`signs`].
pub(crate) fn sign(i: usize) -> f64 {
    let mixed = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    match (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 63 {
        0 => 1.0,
        _ => -1.0,
    }
}

/// Estimates the root mean square over the rows of $(\sum_j a_{ij}^2)^{1/2}$, by a product with random signs.
pub(crate) fn row_size<D: VectorKernels<f64>>(
    a: &dyn LinearOperator<f64, D>,
    comm: &Comm,
) -> Result<f64, LinalgError> {
    let (device, n) = (a.device(), a.n_rows());
    let mut product = Buffer::zeros(device, n)?;
    a.apply(&mut product, &signs(device, n)?)?;
    let mut sums = [device.dot(&product, &product)?, n as f64];
    comm.sum_values(&mut sums)?;
    Ok((sums[0] / sums[1].max(1.0)).sqrt())
}
