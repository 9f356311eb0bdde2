use std::time::Instant;

use femtile::device::{Buffer, Device, HostDevice};
use femtile::linalg::LinearOperator;
use femtile::linalg::sparse::choice::Described;
use femtile::linalg::sparse::{Csr, Format, ProductMatrix, SparseKernels};
use serde::Serialize;

use crate::{BenchError, Samples, Stopwatch};

/// Times of products in one format.
#[derive(Debug, Clone, Serialize)]
pub struct Timed {
    /// The format, or the algorithm of another library.
    pub format: String,
    /// Median over the runs, in seconds.
    pub seconds_median: f64,
    /// Fastest run, in seconds.
    pub seconds_min: f64,
    /// Stored entries over non-zeros.
    pub padding: f64,
    /// Bytes that one product in this format moves.
    pub bytes: usize,
    /// Seconds to convert the matrix from CSR on the host.
    pub seconds_built: f64,
}

/// Returns the bytes that rates count for every format: 12 a non-zero (value and 32-bit column) and 20 a row (offset,
/// entry of x, entry of y).
pub fn nominal_bytes<D: Device>(a: &Csr<f64, D>) -> usize {
    12 * a.n_nonzeros() + 20 * a.n_rows()
}

/// Stores `a` in a format and times its products.
///
/// # Errors
/// [`LinalgError::Setting`](femtile::linalg::LinalgError::Setting) when the format cannot hold the matrix; errors of the
/// device.
pub fn time_format<D: SparseKernels<f64> + Described + Stopwatch, H: HostDevice>(
    device: &D,
    a: &Csr<f64, H>,
    format: Format,
    repeats: usize,
) -> Result<Timed, BenchError> {
    time_checked(device, a, format, repeats, |_| Ok(()))
}

/// As [`time_format`], with `check` called on the stored matrix before its products are timed.
pub(super) fn time_checked<D: SparseKernels<f64> + Described + Stopwatch, H: HostDevice>(
    device: &D,
    a: &Csr<f64, H>,
    format: Format,
    repeats: usize,
    check: impl FnOnce(&ProductMatrix<f64, D>) -> Result<(), BenchError>,
) -> Result<Timed, BenchError> {
    let begun = Instant::now();
    let matrix = ProductMatrix::from_csr(device, a, format)?;
    let seconds_built = begun.elapsed().as_secs_f64();
    check(&matrix)?;
    let samples = time_operator(device, &matrix, repeats)?;
    Ok(Timed {
        format: format.name(),
        seconds_median: samples.median(),
        seconds_min: samples.min(),
        padding: matrix.n_stored() as f64 / a.n_nonzeros().max(1) as f64,
        bytes: matrix.product_bytes(),
        seconds_built,
    })
}

/// Times products with an operator.
///
/// # Errors
/// Errors of the device.
pub fn time_operator<D: Stopwatch>(
    device: &D,
    a: &dyn LinearOperator<f64, D>,
    repeats: usize,
) -> Result<Samples, BenchError> {
    let x = Buffer::from_vec(device, right_vector(a.n_cols()))?;
    let mut y = Buffer::zeros(device, a.n_rows())?;
    device.time_repeated(repeats, &mut || a.apply(&mut y, &x))
}

/// Returns the vector x that every format and library multiplies.
pub fn right_vector(n: usize) -> Vec<f64> {
    (0..n).map(|i| 1.0 + (i % 17) as f64 / 16.0).collect()
}
