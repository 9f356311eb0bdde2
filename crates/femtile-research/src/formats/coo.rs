//! Coordinates: the row, the column and the value of each entry, sorted by row.

use femtile::device::{Buffer, HostDevice, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::sparse::csr::Csr;
use femtile::linalg::sparse::need_narrow;

use super::FormatKernels;
use super::carries::Carries;

/// A sparse matrix in coordinates, sorted by row.
///
/// Every tile of entries is the same work, whatever the lengths of rows; sums of rows that cross tiles are
/// added afterwards, in order.
///
/// # Shapes
/// `rows, columns, values: [n_nonzeros]`; rows ascend.
/// # Source
/// `[wong2015]`, section 4, COO. Differs: blocks of threads sum tiles of equal size, not warps.
#[derive(Debug)]
pub struct Coo<T: Scalar, D: FormatKernels<T>> {
    pub(super) n_rows: usize,
    pub(super) n_cols: usize,
    pub(super) rows: Buffer<u32, D>,
    pub(super) columns: Buffer<u32, D>,
    pub(super) values: Buffer<T, D>,
    pub(super) carries: Carries<T, D>,
}

impl<T: Scalar, D: FormatKernels<T>> Coo<T, D> {
    /// The entries of each row of `a` behind its first `width` ones.
    pub(super) fn behind(device: &D, a: &Csr<T, impl HostDevice>, width: usize) -> Result<Self, LinalgError> {
        need_narrow(a.n_rows(), a.n_cols())?;
        let (mut rows, mut columns, mut values) = (vec![], vec![], vec![]);
        for row in 0..a.n_rows() {
            for (column, value) in a.row(row).skip(width) {
                rows.push(row as u32);
                columns.push(column as u32);
                values.push(value);
            }
        }
        Ok(Self {
            n_rows: a.n_rows(),
            n_cols: a.n_cols(),
            carries: Carries::new(device, values.len())?,
            rows: Buffer::from_vec(device, rows)?,
            columns: Buffer::from_vec(device, columns)?,
            values: Buffer::from_vec(device, values)?,
        })
    }
}
