//! Helpers of the formats that build their arrays from rows.

use femtile::device::{Device, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::sparse::csr::{Csr, HostOffsets};

/// Column of a stored entry that is padding.
pub(super) const NO_COLUMN: u32 = u32::MAX;

/// Checks that all stored entries have 32-bit numbers.
pub(super) fn need_32_bits(stored: usize) -> Result<(), LinalgError> {
    if u32::try_from(stored).is_ok() {
        return Ok(());
    }
    let message = format!("{stored} stored entries are too many: choose CSR, or a format that pads less");
    Err(LinalgError::Setting { field: "format", message })
}

/// Builds a CSR matrix from the entries of rows with the given lengths.
pub(super) fn csr_from_rows<T: Scalar, D: Device>(
    device: &D,
    n_cols: usize,
    lengths: &[u32],
    columns: Vec<u32>,
    values: Vec<T>,
) -> Result<Csr<T, D>, LinalgError> {
    let offsets = HostOffsets::from_row_lengths(lengths.iter().map(|&length| length as usize));
    Csr::from_parts(device, n_cols, offsets, columns, values)
}

/// Returns stored entries over non-zeros; 1 where there are none.
pub(super) fn padding(stored: usize, n_nonzeros: usize) -> f64 {
    if n_nonzeros == 0 { 1.0 } else { stored as f64 / n_nonzeros as f64 }
}
