//! Coordinates: the row, the column and the value of each entry, sorted by row.

#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod kernels;
mod reference;

use femtile::device::{Buffer, Device, HostDevice, Scalar};
use femtile::linalg::hooks::Hook;
use femtile::linalg::sparse::csr::Csr;
use femtile::linalg::sparse::need_narrow;
use femtile::linalg::{LinalgError, LinearOperator, need_product};

use super::carries::Carries;
use super::linear_operator;
use super::rows::csr_from_rows;
pub use kernels::CooKernels;

/// A sparse matrix in coordinates, sorted by row.
///
/// Every tile of entries is the same work, whatever the lengths of rows; sums of rows that cross tiles are
/// added afterwards, in order.
///
/// # Shapes
/// `rows, columns, values: [n_nonzeros]`; rows ascend.
/// # Cost
/// A product reads 16 bytes a non-zero and 8 bytes a row, and writes 8 bytes a row (f64).
/// # Source
/// `[wong2015]`, section 4, COO. Differs: blocks of threads sum tiles of equal size, not warps.
#[derive(Debug)]
pub struct Coo<T: Scalar, D: CooKernels<T>> {
    n_rows: usize,
    n_cols: usize,
    has_empty_rows: bool,
    rows: Buffer<u32, D>,
    columns: Buffer<u32, D>,
    values: Buffer<T, D>,
    carries: Carries<T, D>,
}

/// Entries on the host, sorted by row.
#[derive(Debug)]
pub(super) struct Entries<T> {
    pub(super) rows: Vec<u32>,
    pub(super) columns: Vec<u32>,
    pub(super) values: Vec<T>,
}

impl<T: Scalar, D: CooKernels<T>> Coo<T, D> {
    /// The entries of `a` on `device`.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] where rows have no 32-bit numbers; errors of the device.
    pub fn from_csr(device: &D, a: &Csr<T, impl HostDevice>) -> Result<Self, LinalgError> {
        need_narrow(a.n_rows(), a.n_cols())?;
        let lengths = a.row_lengths().into_iter().enumerate();
        let rows = lengths.flat_map(|(row, length)| std::iter::repeat_n(row as u32, length as usize));
        let (columns, values) = (a.columns().to_host()?, a.values().to_host()?);
        Self::from_entries(
            device,
            [a.n_rows(), a.n_cols()],
            Entries { rows: rows.collect(), columns, values },
        )
    }

    /// A matrix of this shape from sound entries.
    pub(super) fn from_entries(
        device: &D,
        [n_rows, n_cols]: [usize; 2],
        Entries { rows, columns, values }: Entries<T>,
    ) -> Result<Self, LinalgError> {
        let has_empty_rows = rows.chunk_by(|a, b| a == b).count() < n_rows;
        let carries = Carries::new(device, values.len())?;
        let [rows, columns] = [Buffer::from_vec(device, rows)?, Buffer::from_vec(device, columns)?];
        let values = Buffer::from_vec(device, values)?;
        Ok(Self { n_rows, n_cols, has_empty_rows, rows, columns, values, carries })
    }

    /// The same matrix in compressed sparse rows on `device`.
    ///
    /// # Errors
    /// Errors of the devices.
    pub fn to_csr<E: Device>(&self, device: &E) -> Result<Csr<T, E>, LinalgError> {
        let mut lengths = vec![0; self.n_rows];
        for row in self.rows.to_host()? {
            lengths[row as usize] += 1;
        }
        csr_from_rows(device, self.n_cols, &lengths, self.columns.to_host()?, self.values.to_host()?)
    }

    /// Number of stored entries.
    pub fn n_nonzeros(&self) -> usize {
        self.values.len()
    }

    /// Stored entries over non-zeros: 1.
    pub fn padding(&self) -> f64 {
        1.0
    }

    /// Bytes that one product must move: `n_nonzeros · (8 + size) + n_rows · 2 size`.
    pub fn product_bytes(&self) -> usize {
        let size = size_of::<T>();
        self.n_nonzeros() * (8 + size) + self.n_rows * 2 * size
    }
}

linear_operator!(Coo, CooKernels<T>, |a| [a.n_rows, a.n_cols, a.values.device()], |y, x, hook| {
    let device = a.device();
    device.hook_rows(y, x, hook, |y| device.coo_apply(y, a, x, false))
});
