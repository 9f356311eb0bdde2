use std::time::Instant;

use femtile_device::{Buffer, Device, HostDevice};
use femtile_linalg::LinearOperator;
use femtile_linalg::sparse::Csr;
use serde::Serialize;

use crate::{Samples, Stopwatch, Stored, SurveyFormat, TuneError};

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
/// [`LinalgError::Setting`](femtile_linalg::LinalgError::Setting) when the format cannot hold the matrix; errors of the
/// device.
pub fn time_format<D: Stopwatch, H: HostDevice>(
    device: &D,
    a: &Csr<f64, H>,
    format: &dyn SurveyFormat<D, H>,
    repeats: usize,
) -> Result<Timed, TuneError> {
    time_checked(device, a, format, repeats, &mut |_| Ok(()))
}

/// A check of a stored matrix.
pub(crate) type Check<'a, D> = dyn FnMut(&dyn LinearOperator<f64, D>) -> Result<(), TuneError> + 'a;

/// As [`time_format`], with `check` called on the stored matrix before its products are timed.
pub(crate) fn time_checked<D: Stopwatch, H: HostDevice>(
    device: &D,
    a: &Csr<f64, H>,
    format: &dyn SurveyFormat<D, H>,
    repeats: usize,
    check: &mut Check<'_, D>,
) -> Result<Timed, TuneError> {
    let begun = Instant::now();
    let Stored { operator, padding, bytes } = format.store(device, a)?;
    let seconds_built = begun.elapsed().as_secs_f64();
    check(&*operator)?;
    let samples = time_operator(device, &*operator, repeats)?;
    Ok(Timed {
        format: format.name(),
        seconds_median: samples.median(),
        seconds_min: samples.min(),
        padding,
        bytes,
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
) -> Result<Samples, TuneError> {
    let x = Buffer::from_vec(device, right_vector(a.n_cols()))?;
    let mut y = Buffer::zeros(device, a.n_rows())?;
    device.time_repeated(repeats, &mut || a.apply(&mut y, &x))
}

/// Returns the vector x that every format and library multiplies.
pub fn right_vector(n: usize) -> Vec<f64> {
    (0..n).map(|i| 1.0 + (i % 17) as f64 / 16.0).collect()
}
