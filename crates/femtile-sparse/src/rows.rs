use femtile_device::HostDevice;
use femtile_linalg::LinalgError;

use super::csr::Offsets;

/// Returns the number of the first entry of row `row`.
pub(super) fn offset<D: HostDevice>(offsets: &Offsets<D>, row: usize) -> usize {
    match offsets {
        Offsets::Narrow(offsets) => offsets.as_slice()[row] as usize,
        Offsets::Wide(offsets) => offsets.as_slice()[row] as usize,
    }
}

/// Checks that all rows and columns have 32-bit numbers below $2^{32} - 1$, which marks padding.
///
/// # Errors
/// [`LinalgError::Setting`] with the field `rows` or `columns`.
pub fn need_narrow(n_rows: usize, n_cols: usize) -> Result<(), LinalgError> {
    let (field, found) = if n_rows > n_cols { ("rows", n_rows) } else { ("columns", n_cols) };
    if found < u32::MAX as usize {
        return Ok(());
    }
    Err(LinalgError::Setting {
        field,
        message: format!("{found} are too many: fewer than 2³² − 1 are supported"),
    })
}
