use femtile_device::{Device, HostDevice, Scalar};

use super::csr::{Csr, HostOffsets, Offsets};
use crate::LinalgError;

/// The column of a stored entry that is padding.
pub(super) const NO_COLUMN: u32 = u32::MAX;

/// Where row `row` begins.
pub(super) fn offset<D: HostDevice>(offsets: &Offsets<D>, row: usize) -> usize {
    match offsets {
        Offsets::Narrow(offsets) => offsets.as_slice()[row] as usize,
        Offsets::Wide(offsets) => offsets.as_slice()[row] as usize,
    }
}

/// Refuses matrices whose rows and columns do not all have 32-bit numbers below $2^{32} - 1$, which marks none.
pub(in crate::sparse) fn need_narrow(n_rows: usize, n_cols: usize) -> Result<(), LinalgError> {
    let (field, found) = if n_rows > n_cols { ("rows", n_rows) } else { ("columns", n_cols) };
    if found < u32::MAX as usize {
        return Ok(());
    }
    Err(LinalgError::Setting {
        field,
        message: format!("{found} are too many: fewer than 2³² − 1 are supported"),
    })
}

/// Refuses formats whose stored entries do not all have 32-bit numbers.
pub(super) fn need_32_bits(stored: usize) -> Result<(), LinalgError> {
    if u32::try_from(stored).is_ok() {
        return Ok(());
    }
    let message = format!("{stored} stored entries are too many: choose CSR, or a format that pads less");
    Err(LinalgError::Setting { field: "format", message })
}

/// A CSR matrix from its entries by rows of these lengths.
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

/// Stored entries over non-zeros; 1 where there are none.
pub(super) fn padding(stored: usize, n_nonzeros: usize) -> f64 {
    if n_nonzeros == 0 { 1.0 } else { stored as f64 / n_nonzeros as f64 }
}
