//! Sparse products in every format, timed side by side with other libraries.

mod bound;
mod histogram;
mod lengths;
mod peers;
mod product;
mod stopwatch;
mod survey;
mod tuned;

use femtile::device::{Buffer, Device, HostDevice};
use femtile::linalg::LinearOperator;
use femtile::linalg::sparse::{Csr, Format, SparseKernels, SparseMatrix};
use serde::Serialize;

use crate::BenchError;
use crate::timing::Samples;
pub use bound::{Bound, Compared};
pub use histogram::histogram_svg;
pub use lengths::{Bin, RowLengths};
pub use peers::{Peer, PeerTimes, ask_peers};
pub use product::ReferenceProduct;
pub use stopwatch::Stopwatch;
pub use survey::{Entry, Skipped, Survey, SurveyConfig, survey};
pub use tuned::Tuned;

/// Time of a product in one format.
#[derive(Debug, Clone, Serialize)]
pub struct Timed {
    /// The format, or the algorithm of another library.
    pub format: String,
    /// Median of several runs, in seconds.
    pub seconds_median: f64,
    /// The fastest run.
    pub seconds_min: f64,
    /// Stored entries over non-zeros.
    pub padding: f64,
    /// Bytes that this format must move.
    pub bytes: usize,
    /// Seconds of laying it out, from CSR on the host.
    pub seconds_built: f64,
}

/// Bytes that count as moved whatever a format stores: a value and a 32-bit column for each non-zero, an offset and an
/// entry of x and of y for each row.
pub fn nominal_bytes<D: Device>(a: &Csr<f64, D>) -> usize {
    12 * a.n_nonzeros() + 20 * a.n_rows()
}

/// Times a format; returns the reason if it cannot hold the matrix.
///
/// # Errors
/// Errors of the device.
pub fn time_format<D: SparseKernels<f64> + Stopwatch, H: HostDevice>(
    device: &D,
    a: &Csr<f64, H>,
    format: Format,
    repeats: usize,
) -> Result<Timed, BenchError> {
    let begun = std::time::Instant::now();
    let matrix = SparseMatrix::new(device, a, format)?;
    let seconds_built = begun.elapsed().as_secs_f64();
    let samples = time_operator(device, &matrix, repeats)?;
    Ok(Timed {
        format: format.name(),
        seconds_median: samples.median(),
        seconds_min: samples.min(),
        padding: matrix.padding(),
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

/// The vector that all formats and libraries multiply.
pub fn right_vector(n: usize) -> Vec<f64> {
    (0..n).map(|i| 1.0 + (i % 17) as f64 / 16.0).collect()
}
