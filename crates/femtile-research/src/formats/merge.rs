//! Compressed sparse rows whose entries, not whose rows, are shared out evenly.

use femtile::device::{Buffer, HostDevice, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::sparse::csr::{Csr, Offsets};
use femtile::linalg::sparse::need_narrow;

use super::FormatKernels;
use super::carries::Carries;

/// A matrix in compressed sparse rows with the row that each tile of entries begins with.
///
/// Every tile is the same work, whatever the lengths of rows: where rows end in it is known from the offsets, and
/// sums of rows that cross tiles are added afterwards, in order.
///
/// # Shapes
/// `tile_rows: [n_tiles + 1]`: rows from `tile_rows[t]` to before `tile_rows[t + 1]` end in tile t.
/// # Source
/// `[wong2015]`, section 4, ModernGPU. Differs: columns are not compressed, the ends of rows are not stored but
/// found from the offsets, and the array of entries is that of CSR.
#[derive(Debug)]
pub struct Merge<T: Scalar, D: FormatKernels<T>> {
    pub(super) matrix: Csr<T, D>,
    pub(super) tile_rows: Buffer<u32, D>,
    pub(super) carries: Carries<T, D>,
}

impl<T: Scalar, D: FormatKernels<T>> Merge<T, D> {
    /// The matrix `a` on `device`, with the rows of its tiles.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] where rows have no 32-bit numbers; errors of the device.
    pub fn from_csr(device: &D, a: &Csr<T, impl HostDevice>) -> Result<Self, LinalgError> {
        need_narrow(a.n_rows(), a.n_cols())?;
        let n_tiles = a.n_nonzeros().div_ceil(device.tile_entries());
        let row_of = |tile: usize| match tile {
            0 => 0,
            _ if tile == n_tiles => a.n_rows() as u32,
            _ => row_of_entry(a.offsets(), tile * device.tile_entries()) as u32,
        };
        let tile_rows = Buffer::from_vec(device, (0..=n_tiles).map(row_of).collect())?;
        let carries = Carries::new(device, a.n_nonzeros())?;
        Ok(Self { matrix: a.copy_to(device)?, tile_rows, carries })
    }

    /// Returns the number of stored entries.
    pub fn n_nonzeros(&self) -> usize {
        self.matrix.n_nonzeros()
    }
}

/// The row that entry `entry` lies in.
fn row_of_entry<D: HostDevice>(offsets: &Offsets<D>, entry: usize) -> usize {
    let behind = match offsets {
        Offsets::Narrow(offsets) => offsets.as_slice().partition_point(|&offset| offset as usize <= entry),
        Offsets::Wide(offsets) => offsets.as_slice().partition_point(|&offset| offset as usize <= entry),
    };
    behind - 1
}
