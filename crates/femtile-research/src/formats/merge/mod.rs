//! Compressed sparse rows whose entries, not whose rows, are shared out evenly.

#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod kernels;
mod reference;

use femtile::device::{Buffer, Device, HostDevice, Scalar};
use femtile::linalg::hooks::Hook;
use femtile::linalg::sparse::csr::{Csr, Offsets};
use femtile::linalg::sparse::need_narrow;
use femtile::linalg::{LinalgError, LinearOperator, need_product};

use super::carries::Carries;
use super::linear_operator;
pub use kernels::MergeKernels;

/// A matrix in compressed sparse rows with the row that each tile of entries begins with.
///
/// Every tile is the same work, whatever the lengths of rows: where rows end in it is known from the offsets, and
/// sums of rows that cross tiles are added afterwards, in order.
///
/// # Shapes
/// `tile_rows: [n_tiles + 1]`: rows from `tile_rows[t]` to before `tile_rows[t + 1]` end in tile t.
/// # Cost
/// A product reads 12 bytes a non-zero and 12 bytes a row, and writes 8 bytes a row (f64).
/// # Source
/// `[wong2015]`, section 4, ModernGPU. Differs: columns are not compressed, the ends of rows are not stored but
/// found from the offsets, and the array of entries is that of CSR.
#[derive(Debug)]
pub struct Merge<T: Scalar, D: MergeKernels<T>> {
    matrix: Csr<T, D>,
    tile_rows: Buffer<u32, D>,
    carries: Carries<T, D>,
}

impl<T: Scalar, D: MergeKernels<T>> Merge<T, D> {
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

    /// The same matrix in compressed sparse rows on `device`.
    ///
    /// # Errors
    /// Errors of the devices.
    pub fn to_csr<E: Device>(&self, device: &E) -> Result<Csr<T, E>, LinalgError> {
        self.matrix.copy_to(device)
    }

    /// Number of stored entries.
    pub fn n_nonzeros(&self) -> usize {
        self.matrix.n_nonzeros()
    }

    /// Stored entries over non-zeros: 1.
    pub fn padding(&self) -> f64 {
        1.0
    }

    /// Bytes that one product must move: those of CSR, and 4 a tile.
    pub fn product_bytes(&self) -> usize {
        self.matrix.product_bytes() + 4 * self.tile_rows.len()
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

linear_operator!(
    Merge,
    MergeKernels<T>,
    |a| [a.matrix.n_rows(), a.matrix.n_cols(), a.tile_rows.device()],
    |y, x, hook| {
        let device = a.device();
        device.hook_rows(y, x, hook, |y| device.merge_apply(y, a, x))
    }
);
