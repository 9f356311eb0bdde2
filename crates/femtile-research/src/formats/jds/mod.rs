//! Padded jagged diagonals: rows sorted by length, stored column by column over the whole matrix.

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

use super::linear_operator;
use super::rows::{NO_COLUMN, csr_from_rows, need_32_bits, padding};
pub use kernels::JdsKernels;

/// Rows that are padded to the same length.
const SLICE: usize = 32;

/// A sparse matrix in padded jagged diagonals (pJDS).
///
/// Rows are sorted from the longest to the shortest, and each 32 of them are padded to the longest of these. Entry j
/// of the row at place i lies at `starts[j] + i`. Rows keep their numbers outside: y is written through `rows`.
///
/// # Shapes
/// `rows, lengths: [n_rows]`, by place; `starts: [longest + 1]`; `columns, values: [starts[longest]]`.
/// # Cost
/// A product reads 12 bytes a non-zero and 16 a row, and writes 8 a row (f64).
/// # Source
/// `[wong2015]`, Listing 1. Differs: x and y are not permuted, so that nothing has to be carried back.
#[derive(Debug)]
pub struct Jds<T: Scalar, D: Device> {
    n_cols: usize,
    n_nonzeros: usize,
    rows: Buffer<u32, D>,
    lengths: Buffer<u32, D>,
    starts: Buffer<u32, D>,
    columns: Buffer<u32, D>,
    values: Buffer<T, D>,
}

impl<T: Scalar, D: Device> Jds<T, D> {
    /// The matrix `a` on `device`.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when there would be more than $2^{32} - 1$ stored entries; errors of the device.
    pub fn from_csr(device: &D, a: &Csr<T, impl HostDevice>) -> Result<Self, LinalgError> {
        need_narrow(a.n_rows(), a.n_cols())?;
        let of_row = a.row_lengths();
        let rows = longest_first(&of_row);
        let lengths: Vec<u32> = rows.iter().map(|&row| of_row[row as usize]).collect();
        let starts = column_starts(&lengths);
        let stored = starts.last().copied().unwrap_or(0);
        need_32_bits(stored)?;
        let (mut columns, mut values) = (vec![NO_COLUMN; stored], vec![T::ZERO; stored]);
        for (place, &row) in rows.iter().enumerate() {
            for (start, (column, value)) in starts.iter().zip(a.row(row as usize)) {
                columns[start + place] = column as u32;
                values[start + place] = value;
            }
        }
        Ok(Self {
            n_cols: a.n_cols(),
            n_nonzeros: a.n_nonzeros(),
            rows: Buffer::from_vec(device, rows)?,
            lengths: Buffer::from_vec(device, lengths)?,
            starts: Buffer::from_vec(device, starts.into_iter().map(|start| start as u32).collect())?,
            columns: Buffer::from_vec(device, columns)?,
            values: Buffer::from_vec(device, values)?,
        })
    }

    /// The same matrix in compressed sparse rows on `device`.
    ///
    /// # Errors
    /// Errors of the devices.
    pub fn to_csr<E: Device>(&self, device: &E) -> Result<Csr<T, E>, LinalgError> {
        let (rows, sorted_lengths, starts) =
            (self.rows.to_host()?, self.lengths.to_host()?, self.starts.to_host()?);
        let (stored_columns, stored_values) = (self.columns.to_host()?, self.values.to_host()?);
        let mut places = vec![0; rows.len()];
        for (place, &row) in rows.iter().enumerate() {
            places[row as usize] = place;
        }
        let lengths: Vec<u32> = places.iter().map(|&place| sorted_lengths[place]).collect();
        let (mut columns, mut values) = (vec![], vec![]);
        for (place, &length) in places.into_iter().zip(&lengths) {
            for &start in &starts[..length as usize] {
                columns.push(stored_columns[start as usize + place]);
                values.push(stored_values[start as usize + place]);
            }
        }
        csr_from_rows(device, self.n_cols, &lengths, columns, values)
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

    /// Bytes that one product must move: `n_nonzeros · (4 + size) + n_rows · (8 + 2 size)`, and 4 a column of the
    /// format.
    pub fn product_bytes(&self) -> usize {
        let size = size_of::<T>();
        self.n_nonzeros * (4 + size) + self.rows.len() * (8 + 2 * size) + self.starts.len() * 4
    }
}

/// Rows by descending length, those of one length in their own order: a counting sort.
fn longest_first(lengths: &[u32]) -> Vec<u32> {
    let longest = lengths.iter().max().map_or(0, |&length| length as usize);
    let class = |length: u32| longest - length as usize;
    let mut next = vec![0; longest + 2];
    for &length in lengths {
        next[class(length) + 1] += 1;
    }
    for i in 1..next.len() {
        next[i] += next[i - 1];
    }
    let mut rows = vec![0; lengths.len()];
    for (row, &length) in lengths.iter().enumerate() {
        rows[next[class(length)]] = row as u32;
        next[class(length)] += 1;
    }
    rows
}

/// Where each column of the format begins, and the number of stored entries behind the last, from descending
/// lengths of rows.
fn column_starts(lengths: &[u32]) -> Vec<usize> {
    let mut widths: Vec<usize> = lengths.chunks(SLICE).map(|slice| slice[0] as usize).collect();
    let mut starts = vec![0];
    let mut next = 0;
    for j in 0..widths.first().copied().unwrap_or(0) {
        while widths.last().is_some_and(|&width| width <= j) {
            widths.pop();
        }
        next += widths.len() * SLICE;
        starts.push(next);
    }
    starts
}

linear_operator!(Jds, JdsKernels<T>, |a| [a.rows.len(), a.n_cols, a.values.device()], |y, x, hook| a
    .device()
    .jds_apply(y, a, x, hook));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_by_length_and_stay_in_order_within_one() {
        assert_eq!(longest_first(&[1, 3, 0, 3, 1]), [1, 3, 0, 4, 2]);
        assert!(longest_first(&[]).is_empty());
    }

    #[test]
    fn slices_are_padded_to_their_longest_row() {
        let lengths: Vec<u32> = [vec![2; 3], vec![1; 30], vec![0; 40]].concat();
        assert_eq!(column_starts(&lengths), [0, 64, 96]);
        assert_eq!(column_starts(&[]), [0]);
    }
}
