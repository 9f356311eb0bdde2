//! ELLPACK: all rows as long as the longest, stored column by column.

mod config;
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

use super::linear_operator;
use super::rows::{NO_COLUMN, csr_from_rows, need_32_bits, padding};
pub use config::EllConfig;
pub use kernels::EllKernels;

/// Stored entries over non-zeros beyond which a matrix is refused.
const MAX_PADDING: usize = 50;
/// Every step begins at a multiple of this, which is where a memory line begins.
const ALIGNMENT: usize = 32;

/// A sparse matrix in ELLPACK, with t threads a row and perhaps with the length of each row.
///
/// Entry j of row i lies at `(j / t) · pitch + i · t + j % t`, so that neighbouring threads read neighbouring
/// entries. Padding has value 0 and the column 2³² − 1, and is multiplied with nothing.
///
/// # Shapes
/// `columns, values: [steps · pitch]`, where `steps · t` is at least the longest row; `lengths: [n_rows]`.
/// # Cost
/// With lengths, a product reads 12 bytes a non-zero and 12 a row, and writes 8 a row (f64); without them it reads
/// 12 bytes a stored entry.
/// # Source
/// `[wong2015]`, section 4, ELL and its variants ELLPACK-R and ELLR-T.
#[derive(Debug)]
pub struct Ell<T: Scalar, D: Device> {
    n_rows: usize,
    n_cols: usize,
    n_nonzeros: usize,
    config: EllConfig,
    steps: usize,
    pitch: usize,
    lengths: Option<Buffer<u32, D>>,
    columns: Buffer<u32, D>,
    values: Buffer<T, D>,
}

impl<T: Scalar, D: Device> Ell<T, D> {
    /// The matrix `a` on `device`.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when there would be more than 50 stored entries a non-zero, or more than $2^{32} - 1$,
    /// or when the configuration is not sound; errors of the device.
    pub fn from_csr(device: &D, a: &Csr<T, impl HostDevice>, config: EllConfig) -> Result<Self, LinalgError> {
        let width = a.row_lengths().into_iter().max().unwrap_or(0);
        Self::of_width(device, a, width as usize, config)
    }

    /// The first `width` entries of each row of `a`.
    pub(super) fn of_width(
        device: &D,
        a: &Csr<T, impl HostDevice>,
        width: usize,
        config: EllConfig,
    ) -> Result<Self, LinalgError> {
        config.check()?;
        let (n_rows, n_cols) = (a.n_rows(), a.n_cols());
        need_narrow(n_rows, n_cols)?;
        let lengths: Vec<u32> = a.row_lengths().into_iter().map(|length| length.min(width as u32)).collect();
        let n_nonzeros = lengths.iter().map(|&length| length as usize).sum();
        let steps = width.div_ceil(config.threads_per_row);
        let pitch = (n_rows * config.threads_per_row).next_multiple_of(ALIGNMENT);
        need_little_padding(steps * pitch, n_nonzeros, width)?;
        need_32_bits(steps * pitch)?;
        let columns = Buffer::zeros(device, 0)?;
        let values = Buffer::zeros(device, 0)?;
        let mut ell =
            Self { n_rows, n_cols, n_nonzeros, config, steps, pitch, lengths: None, columns, values };
        let (columns, values) = ell.lay_out(a, width);
        ell.columns = Buffer::from_vec(device, columns)?;
        ell.values = Buffer::from_vec(device, values)?;
        ell.lengths = config.lengths.then(|| Buffer::from_vec(device, lengths)).transpose()?;
        Ok(ell)
    }

    /// Where entry `j` of `row` lies.
    fn place(&self, row: usize, j: usize) -> usize {
        let threads = self.config.threads_per_row;
        j / threads * self.pitch + row * threads + j % threads
    }

    fn lay_out(&self, a: &Csr<T, impl HostDevice>, width: usize) -> (Vec<u32>, Vec<T>) {
        let stored = self.steps * self.pitch;
        let (mut columns, mut values) = (vec![NO_COLUMN; stored], vec![T::ZERO; stored]);
        for row in 0..self.n_rows {
            for (j, (column, value)) in a.row(row).take(width).enumerate() {
                columns[self.place(row, j)] = column as u32;
                values[self.place(row, j)] = value;
            }
        }
        (columns, values)
    }

    /// The same matrix in compressed sparse rows on `device`.
    ///
    /// # Errors
    /// Errors of the devices.
    pub fn to_csr<E: Device>(&self, device: &E) -> Result<Csr<T, E>, LinalgError> {
        let (stored_columns, stored_values) = (self.columns.to_host()?, self.values.to_host()?);
        let (mut lengths, mut columns, mut values) = (Vec::with_capacity(self.n_rows), vec![], vec![]);
        for row in 0..self.n_rows {
            let before = columns.len();
            let places = (0..self.steps * self.config.threads_per_row).map(|j| self.place(row, j));
            for place in places.take_while(|&place| stored_columns[place] != NO_COLUMN) {
                columns.push(stored_columns[place]);
                values.push(stored_values[place]);
            }
            lengths.push((columns.len() - before) as u32);
        }
        csr_from_rows(device, self.n_cols, &lengths, columns, values)
    }

    /// Returns the layout of the matrix.
    pub fn config(&self) -> EllConfig {
        self.config
    }

    /// Number of entries that are not padding.
    pub fn n_nonzeros(&self) -> usize {
        self.n_nonzeros
    }

    /// Number of stored entries.
    pub fn n_stored(&self) -> usize {
        self.values.len()
    }

    /// Stored entries over non-zeros; 1 where there are none.
    pub fn padding(&self) -> f64 {
        padding(self.n_stored(), self.n_nonzeros)
    }

    /// Bytes that one product must move: `n_nonzeros · (4 + size) + n_rows · (4 + 2 size)` with lengths,
    /// `n_stored · (4 + size) + n_rows · 2 size` without.
    pub fn product_bytes(&self) -> usize {
        let size = size_of::<T>();
        let (n_read, of_row) = if self.config.lengths { (self.n_nonzeros, 4) } else { (self.n_stored(), 0) };
        n_read * (4 + size) + self.n_rows * (of_row + 2 * size)
    }
}

fn need_little_padding(stored: usize, n_nonzeros: usize, width: usize) -> Result<(), LinalgError> {
    if stored <= MAX_PADDING * n_nonzeros {
        return Ok(());
    }
    let message = format!(
        "rows as long as the longest, of {width} entries, would store {stored} entries for {n_nonzeros} non-zeros; \
         choose a format that does not pad all rows alike, such as HYB or pJDS"
    );
    Err(LinalgError::Setting { field: "format", message })
}

linear_operator!(Ell, EllKernels<T>, |a| [a.n_rows, a.n_cols, a.values.device()], |y, x, hook| a
    .device()
    .ell_apply(y, a, x, hook));
