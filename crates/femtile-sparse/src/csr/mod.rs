//! Compressed sparse rows: for each row, its columns in ascending order and their values.
//!
//! Columns are u32. Offsets are u32, or u64 above 2³² non-zeros, decided once. Counts are usize.

#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod kernels;
mod reference;
mod transpose;

use std::sync::Arc;

use femtile_device::{Buffer, BufferMut, Device, HostDevice, MemorySpace, Scalar, parallel};
use femtile_linalg::hooks::Hook;
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, LinearOperator, need};

use super::entry_positions::sealed::Sealed;
use super::{EntryPositions, StoredMatrix};
pub use cpu::dot_of_entries;
pub use cuda::narrow_program as cuda_program;
pub use kernels::CsrKernels;

/// Where each row begins: 32-bit numbers as long as they reach, else 64-bit.
#[derive(Debug)]
pub enum Offsets<D: Device> {
    /// Fewer than 2³² non-zeros.
    Narrow(Buffer<u32, D>),
    /// 2³² non-zeros or more.
    Wide(Buffer<u64, D>),
}

impl<D: Device> Offsets<D> {
    fn from_host(device: &D, offsets: HostOffsets) -> Result<Self, LinalgError> {
        Ok(match offsets {
            HostOffsets::Narrow(offsets) => Self::Narrow(Buffer::from_vec(device, offsets)?),
            HostOffsets::Wide(offsets) => Self::Wide(Buffer::from_vec(device, offsets)?),
        })
    }
}

/// Offsets on the host, as assembly produces them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostOffsets {
    /// Fewer than 2³² non-zeros.
    Narrow(Vec<u32>),
    /// 2³² non-zeros or more.
    Wide(Vec<u64>),
}

impl HostOffsets {
    /// Offsets from the number of entries of each row, as narrow as they can be.
    pub fn from_row_lengths(lengths: impl ExactSizeIterator<Item = usize> + Clone) -> Self {
        let total: usize = lengths.clone().sum();
        if u32::try_from(total).is_ok() {
            let mut next = 0;
            let ends = lengths.map(|n| {
                next += n as u32;
                next
            });
            Self::Narrow(std::iter::once(0).chain(ends).collect())
        } else {
            let mut next = 0;
            let ends = lengths.map(|n| {
                next += n as u64;
                next
            });
            Self::Wide(std::iter::once(0).chain(ends).collect())
        }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        match self {
            Self::Narrow(offsets) => offsets.len().saturating_sub(1),
            Self::Wide(offsets) => offsets.len().saturating_sub(1),
        }
    }

    /// Where row `row` begins.
    pub fn get(&self, row: usize) -> usize {
        match self {
            Self::Narrow(offsets) => offsets[row] as usize,
            Self::Wide(offsets) => offsets[row] as usize,
        }
    }
}

impl From<Vec<u32>> for HostOffsets {
    fn from(offsets: Vec<u32>) -> Self {
        Self::Narrow(offsets)
    }
}

/// A sparse matrix in compressed sparse rows.
///
/// # Shapes
/// `offsets: [n_rows + 1]`, `columns, values: [n_nonzeros]`; columns ascend strictly in a row.
/// # Cost
/// A product reads 12 bytes a non-zero and 20 bytes a row (offset, x, y) in f64.
#[derive(Debug)]
pub struct Csr<T: Scalar, D: Device> {
    n_rows: usize,
    n_cols: usize,
    /// Shared with matrices of the same pattern, as the columns are.
    offsets: Arc<Offsets<D>>,
    columns: Arc<Buffer<u32, D>>,
    values: Buffer<T, D>,
}

impl<T: Scalar, D: Device> Csr<T, D> {
    /// A matrix from its three arrays, which it takes over.
    ///
    /// # Errors
    /// [`LinalgError::Structure`] naming the first row whose offsets or columns are not sound,
    /// [`LinalgError::Length`] when the arrays do not match.
    pub fn from_parts(
        device: &D,
        n_cols: usize,
        offsets: HostOffsets,
        columns: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, LinalgError> {
        need("values", columns.len(), values.len())?;
        Self::from_pattern(device, n_cols, offsets, columns, |_, _| Ok(Buffer::from_vec(device, values)?))
    }

    /// A matrix from its three arrays with indices as programs have them, which are copied as 32-bit numbers.
    ///
    /// ```
    /// use femtile_device::Cpu;
    /// use femtile_sparse::Csr;
    ///
    /// // 2 −1
    /// // −1 2
    /// let a = Csr::from_arrays(&Cpu::new(1)?, 2, &[0, 2, 4], &[0, 1, 0, 1], vec![2.0, -1.0, -1.0, 2.0])?;
    /// assert_eq!(a.row(1).collect::<Vec<_>>(), [(0, -1.0), (1, 2.0)]);
    /// # Ok::<(), femtile_linalg::LinalgError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Csr::from_parts`], and for a column of 2³² or more.
    pub fn from_arrays(
        device: &D,
        n_cols: usize,
        offsets: &[usize],
        columns: &[usize],
        values: Vec<T>,
    ) -> Result<Self, LinalgError> {
        let narrow = |&index: &usize| u32::try_from(index).map_err(|_| index);
        let offsets = match offsets.iter().map(narrow).collect::<Result<_, _>>() {
            Ok(offsets) => HostOffsets::Narrow(offsets),
            Err(_) => HostOffsets::Wide(offsets.iter().map(|&offset| offset as u64).collect()),
        };
        let columns = columns.iter().map(narrow).collect::<Result<_, _>>().map_err(|column| {
            let message = format!("{column} is beyond the 4294967296 columns that are supported");
            LinalgError::Setting { field: "columns", message }
        })?;
        Self::from_parts(device, n_cols, offsets, columns, values)
    }

    /// A matrix from its pattern and from what computes its values where the pattern then lies.
    ///
    /// # Errors
    /// As [`Csr::from_parts`], and what `values` reports.
    pub fn from_pattern<E: From<LinalgError>>(
        device: &D,
        n_cols: usize,
        offsets: HostOffsets,
        columns: Vec<u32>,
        values: impl FnOnce(&Offsets<D>, &Buffer<u32, D>) -> Result<Buffer<T, D>, E>,
    ) -> Result<Self, E> {
        check_structure(n_cols, &offsets, &columns)?;
        let n_rows = offsets.n_rows();
        let offsets = Offsets::from_host(device, offsets)?;
        let columns = Buffer::from_vec(device, columns).map_err(LinalgError::from)?;
        let values = values(&offsets, &columns)?;
        need("values", columns.len(), values.len())?;
        Ok(Self { n_rows, n_cols, offsets: Arc::new(offsets), columns: Arc::new(columns), values })
    }

    /// The same matrix on another device.
    ///
    /// # Errors
    /// When a device refuses a copy or has not the memory.
    pub fn copy_to<E: Device>(&self, device: &E) -> Result<Csr<T, E>, LinalgError> {
        let offsets = match self.offsets() {
            Offsets::Narrow(offsets) => Offsets::Narrow(Buffer::from_vec(device, offsets.to_host()?)?),
            Offsets::Wide(offsets) => Offsets::Wide(Buffer::from_vec(device, offsets.to_host()?)?),
        };
        let columns = Buffer::from_vec(device, self.columns.to_host()?)?;
        let values = Buffer::from_vec(device, self.values.to_host()?)?;
        let (offsets, columns) = (Arc::new(offsets), Arc::new(columns));
        Ok(Csr { n_rows: self.n_rows, n_cols: self.n_cols, offsets, columns, values })
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Number of stored entries.
    pub fn n_nonzeros(&self) -> usize {
        self.values.len()
    }

    /// Where each row begins.
    pub fn offsets(&self) -> &Offsets<D> {
        &self.offsets
    }

    /// Column of each entry.
    pub fn columns(&self) -> &Buffer<u32, D> {
        &self.columns
    }

    /// Returns the values, and gives up the pattern.
    pub fn into_values(self) -> Buffer<T, D> {
        self.values
    }

    /// Value of each entry.
    pub fn values(&self) -> &Buffer<T, D> {
        &self.values
    }

    /// Moves values and columns to other memory of the device, as far as there is room; says whether both are there
    /// then.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn move_to(&mut self, place: MemorySpace) -> Result<bool, LinalgError> {
        let has_values = self.values.move_to(place)?;
        // A shared pattern is read by other matrices, and stays.
        let Some(columns) = Arc::get_mut(&mut self.columns) else { return Ok(false) };
        Ok(columns.move_to(place)? && has_values)
    }

    /// Returns a matrix of the same pattern, which it shares, with other values.
    ///
    /// # Errors
    /// [`LinalgError::Length`] where there is not a value for each entry.
    pub fn with_values<U: Scalar>(&self, values: Buffer<U, D>) -> Result<Csr<U, D>, LinalgError> {
        need("values", self.n_nonzeros(), values.len())?;
        let (offsets, columns) = (Arc::clone(&self.offsets), Arc::clone(&self.columns));
        Ok(Csr { n_rows: self.n_rows, n_cols: self.n_cols, offsets, columns, values })
    }

    /// Returns $\alpha A + \beta B$ for a matrix B of the same pattern, which the result shares.
    ///
    /// # Cost
    /// Reads two and writes one value for each non-zero, and sets it to zero before; no memory for a pattern.
    /// # Errors
    /// [`LinalgError::Length`] where the matrices differ in their numbers of rows, columns or non-zeros; columns are not
    /// compared.
    pub fn combined(&self, alpha: T, other: &Self, beta: T) -> Result<Self, LinalgError>
    where
        D: VectorKernels<T>,
    {
        need("rows", self.n_rows, other.n_rows)?;
        need("columns", self.n_cols, other.n_cols)?;
        let device = self.values.device();
        let mut values = Buffer::zeros(device, self.n_nonzeros())?;
        device.combine(&mut values, &[(alpha, &self.values), (beta, &other.values)])?;
        self.with_values(values)
    }

    /// Bytes that one product must move: `n_nonzeros · (4 + size) + n_rows · (4 + 2 size)`.
    pub fn product_bytes(&self) -> usize {
        let size = size_of::<T>();
        self.n_nonzeros() * (4 + size) + self.n_rows * (4 + 2 * size)
    }
}

impl<T: Scalar, D: HostDevice> Csr<T, D> {
    /// Where each row begins and the last one ends, on a device that shares the host's memory.
    pub fn offsets_as_u64(&self) -> Vec<u64> {
        match self.offsets() {
            Offsets::Narrow(offsets) => offsets.as_slice().iter().map(|&offset| u64::from(offset)).collect(),
            Offsets::Wide(offsets) => offsets.as_slice().to_vec(),
        }
    }

    /// Number of entries of each row, on a device that shares the host's memory.
    pub fn row_lengths(&self) -> Vec<u32> {
        match self.offsets() {
            Offsets::Narrow(offsets) => offsets.as_slice().windows(2).map(|ends| ends[1] - ends[0]).collect(),
            Offsets::Wide(offsets) => {
                offsets.as_slice().windows(2).map(|ends| (ends[1] - ends[0]) as u32).collect()
            }
        }
    }

    /// The entries of `row` as (column, value), on a device that shares the host's memory.
    pub fn row(&self, row: usize) -> impl Iterator<Item = (usize, T)> + '_ {
        let range = match self.offsets() {
            Offsets::Narrow(offsets) => {
                offsets.as_slice()[row] as usize..offsets.as_slice()[row + 1] as usize
            }
            Offsets::Wide(offsets) => offsets.as_slice()[row] as usize..offsets.as_slice()[row + 1] as usize,
        };
        let columns = self.columns.as_slice()[range.clone()].iter().map(|&column| column as usize);
        columns.zip(self.values.as_slice()[range].iter().copied())
    }
}

impl<T: Scalar, D: Device> Sealed for Csr<T, D> {}

impl<T: Scalar, D: Device> StoredMatrix<D> for Csr<T, D> {
    type Value = T;
    type Config = ();

    fn zeros(device: &D, offsets: &HostOffsets, columns: &[u32], (): &()) -> Result<Self, LinalgError> {
        let n = offsets.n_rows();
        Self::from_pattern(device, n, offsets.clone(), columns.to_vec(), |_, columns| {
            Ok(Buffer::zeros(device, columns.len())?)
        })
    }

    fn entry_positions(&self) -> Result<EntryPositions, LinalgError> {
        let mut starts = match self.offsets() {
            Offsets::Narrow(offsets) => offsets.to_host()?.into_iter().map(u64::from).collect(),
            Offsets::Wide(offsets) => offsets.to_host()?,
        };
        starts.pop();
        Ok(EntryPositions::rows(starts))
    }

    fn values_mut(&mut self) -> BufferMut<'_, T, D> {
        BufferMut::new(&mut self.values)
    }

    fn combine_values(&mut self, alpha: T, x: &Buffer<T, D>, beta: T) -> Result<(), LinalgError>
    where
        D: VectorKernels<T>,
    {
        x.device().axpby(&mut self.values, alpha, x, beta)
    }
}

impl<T: Scalar, D: CsrKernels<T>> LinearOperator<T, D> for Csr<T, D> {
    fn n_rows(&self) -> usize {
        self.n_rows
    }

    fn n_cols(&self) -> usize {
        self.n_cols
    }

    fn device(&self) -> &D {
        self.values.device()
    }

    fn apply_with(
        &self,
        y: &mut Buffer<T, D>,
        x: &Buffer<T, D>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        need("y", self.n_rows, y.len())?;
        need("x", self.n_cols, x.len())?;
        self.device().csr_apply(y, self, x, hook)
    }

    fn inverse_diagonal(&self) -> Result<Option<Buffer<T, D>>, LinalgError> {
        let mut inverse = Buffer::zeros(self.values.device(), self.n_rows)?;
        self.values.device().csr_inverse_diagonal(&mut inverse, self)?;
        Ok(Some(inverse))
    }
}

/// Rows that a thread checks at a time.
const ROWS_PER_CHECK: usize = 1 << 13;

fn check_structure(n_cols: usize, offsets: &HostOffsets, columns: &[u32]) -> Result<(), LinalgError> {
    let n_rows = offsets.n_rows();
    let pieces = parallel::map(n_rows.div_ceil(ROWS_PER_CHECK), 1, |piece| {
        let rows = piece * ROWS_PER_CHECK..n_rows.min((piece + 1) * ROWS_PER_CHECK);
        check_rows(n_cols, offsets, columns, rows)
    });
    pieces.into_iter().collect::<Result<(), _>>()?;
    need("columns", if n_rows == 0 { 0 } else { offsets.get(n_rows) }, columns.len())
}

/// Fails at the first of some rows that is not as [`Csr`] requires.
fn check_rows(
    n_cols: usize,
    offsets: &HostOffsets,
    columns: &[u32],
    rows: std::ops::Range<usize>,
) -> Result<(), LinalgError> {
    let bad = |field, row, message: &str| Err(LinalgError::Structure { field, row, message: message.into() });
    for row in rows {
        let (begin, end) = (offsets.get(row), offsets.get(row + 1));
        if row == 0 && begin != 0 {
            return bad("offsets", row, "does not begin where the row before it ends");
        }
        let Some(entries) = columns.get(begin..end) else {
            return bad("offsets", row, "ends before it begins or past the last entry");
        };
        if !entries.is_sorted_by(|a, b| a < b) {
            return bad("columns", row, "has columns that do not ascend strictly");
        }
        if entries.last().is_some_and(|&last| last as usize >= n_cols) {
            return bad("columns", row, &format!("has a column past the last of {n_cols}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_indices_are_those_of_32_bits() {
        let cpu = femtile_device::Cpu::new(1).unwrap();
        let values = vec![1.0, 2.0, 3.0];
        let plain = Csr::from_arrays(&cpu, 4, &[0, 2, 3], &[0, 3, 2], values.clone()).unwrap();
        let narrow = Csr::from_parts(&cpu, 4, vec![0, 2, 3].into(), vec![0, 3, 2], values.clone()).unwrap();
        assert!((0..2).all(|row| plain.row(row).eq(narrow.row(row))));
        let refusal = |offsets: &[usize], columns: &[usize]| {
            Csr::from_arrays(&cpu, 4, offsets, columns, values.clone()).unwrap_err().to_string()
        };
        assert!(refusal(&[0, 2, 3], &[0, 3, 1 << 32]).contains("4294967296"));
        assert!(refusal(&[0, 2, 1 << 40], &[0, 3, 2]).contains("row 1"));
        assert!(refusal(&[0, 2, 3], &[3, 0, 2]).contains("row 0"));
    }

    #[test]
    fn the_first_unsound_row_is_named_wherever_it_lies() {
        // Two entries a row, in more rows than a thread checks at a time.
        let n = 3 * ROWS_PER_CHECK + 5;
        let offsets: Vec<u32> = (0..=n as u32).map(|row| 2 * row).collect();
        let columns: Vec<u32> = (0..n as u32).flat_map(|row| [row / 2, n as u32 - 1]).collect();
        let refusal =
            |offsets: &[u32], columns: &[u32]| match check_structure(n, &offsets.to_vec().into(), columns) {
                Ok(()) => None,
                Err(LinalgError::Structure { field, row, .. }) => Some((field, row)),
                Err(other) => panic!("{other}"),
            };
        assert_eq!(refusal(&offsets, &columns), None);
        for row in [0, 1, ROWS_PER_CHECK - 1, ROWS_PER_CHECK, 2 * ROWS_PER_CHECK + 1, n - 2] {
            let mut wrong = columns.clone();
            wrong[2 * row] = n as u32 - 1;
            wrong[2 * n - 1] = n as u32;
            assert_eq!(refusal(&offsets, &wrong), Some(("columns", row)));
            let mut wrong = offsets.clone();
            wrong[row + 1] = 2 * n as u32 + 1;
            assert_eq!(refusal(&wrong, &columns), Some(("offsets", row)));
        }
        let mut late = offsets.clone();
        late[0] = 1;
        assert_eq!(refusal(&late, &columns), Some(("offsets", 0)));
        assert!(check_structure(0, &Vec::<u32>::new().into(), &[]).is_ok());
        assert!(check_structure(n, &offsets.into(), &columns[..2 * n - 1]).is_err());
    }
}
