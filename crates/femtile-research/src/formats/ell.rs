//! ELLPACK: all rows as long as the longest, stored column by column.

use femtile::device::{Buffer, HostDevice, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::sparse::csr::Csr;
use femtile::linalg::sparse::need_narrow;

use super::FormatKernels;

/// Column of a stored entry that is padding.
const NO_COLUMN: u32 = u32::MAX;
/// Every step begins at a multiple of this, which is where a memory line begins.
const ALIGNMENT: usize = 32;

/// A sparse matrix in ELLPACK.
///
/// Entry j of row i lies at `j · pitch + i`, so that neighbouring threads read neighbouring entries. Padding has value
/// 0 and the column 2³² − 1, and is multiplied with nothing.
///
/// # Shapes
/// `columns, values: [steps · pitch]`.
/// # Source
/// `[wong2015]`, section 4, ELL.
#[derive(Debug)]
pub struct Ell<T: Scalar, D: FormatKernels<T>> {
    pub(super) n_rows: usize,
    pub(super) n_cols: usize,
    pub(super) steps: usize,
    pub(super) pitch: usize,
    pub(super) columns: Buffer<u32, D>,
    pub(super) values: Buffer<T, D>,
}

impl<T: Scalar, D: FormatKernels<T>> Ell<T, D> {
    /// The first `width` entries of each row of `a`.
    pub(super) fn of_width(
        device: &D,
        a: &Csr<T, impl HostDevice>,
        width: usize,
    ) -> Result<Self, LinalgError> {
        let (n_rows, n_cols) = (a.n_rows(), a.n_cols());
        need_narrow(n_rows, n_cols)?;
        let pitch = n_rows.next_multiple_of(ALIGNMENT);
        let stored = width * pitch;
        if u32::try_from(stored).is_err() {
            let message = format!("{stored} stored entries are too many: choose a format that pads less");
            return Err(LinalgError::Setting { field: "format", message });
        }
        let (mut columns, mut values) = (vec![NO_COLUMN; stored], vec![T::ZERO; stored]);
        for row in 0..n_rows {
            for (j, (column, value)) in a.row(row).take(width).enumerate() {
                columns[j * pitch + row] = column as u32;
                values[j * pitch + row] = value;
            }
        }
        let (columns, values) = (Buffer::from_vec(device, columns)?, Buffer::from_vec(device, values)?);
        Ok(Self { n_rows, n_cols, steps: width, pitch, columns, values })
    }
}
