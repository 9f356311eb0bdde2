//! A matrix as a list of entries in any order, as files and element loops give them.

use femtile_device::{Device, Scalar};
use femtile_linalg::LinalgError;

use super::csr::{Csr, HostOffsets};

/// Entries `(row, column, value)` of a matrix in the order in which they were pushed.
///
/// # Shapes
/// `rows, columns, values: [n_entries]`; an entry may come more than once.
/// # Cost
/// Eight bytes and a value for each entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Triplets<T: Scalar> {
    n_rows: usize,
    n_cols: usize,
    rows: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<T>,
}

/// A matrix gathered from triplets, and what was met on the way.
#[derive(Debug)]
pub struct Gathered<T: Scalar, D: Device> {
    /// The matrix, with one stored entry for each place that was pushed.
    pub matrix: Csr<T, D>,
    /// Number of duplicate entries, each added to an earlier one.
    pub n_duplicates: usize,
    /// Number of stored values that are NaN or infinite.
    pub n_not_finite: usize,
}

impl<T: Scalar> Triplets<T> {
    /// A matrix of zeros.
    pub fn new(n_rows: usize, n_cols: usize) -> Self {
        Self { n_rows, n_cols, rows: Vec::new(), columns: Vec::new(), values: Vec::new() }
    }

    /// Number of rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Number of columns.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Number of entries pushed, duplicates included.
    pub fn n_entries(&self) -> usize {
        self.values.len()
    }

    /// The entries as (row, column, value), in the order of pushing.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize, T)> + '_ {
        let places = self.rows.iter().zip(&self.columns);
        places.zip(&self.values).map(|((&row, &column), &value)| (row as usize, column as usize, value))
    }

    /// Adds `value` at (`row`, `column`), both counted from 0; NaN and infinities are taken as they are.
    ///
    /// # Errors
    /// [`LinalgError::Entry`] when the place lies outside the matrix, [`LinalgError::Setting`] when it is
    /// inside but beyond 2³² rows or columns.
    #[inline]
    pub fn push(&mut self, row: usize, column: usize, value: T) -> Result<(), LinalgError> {
        if row >= self.n_rows || column >= self.n_cols {
            return Err(self.outside(row, column, value));
        }
        self.rows.push(number("rows", row)?);
        self.columns.push(number("columns", column)?);
        self.values.push(value);
        Ok(())
    }

    #[cold]
    fn outside(&self, row: usize, column: usize, value: T) -> LinalgError {
        let (n_rows, n_cols) = (self.n_rows, self.n_cols);
        LinalgError::Entry { row, column, value: value.to_f64(), n_rows, n_cols }
    }

    /// The matrix with compressed rows; entries of the same place are added in the order of pushing.
    ///
    /// # Cost
    /// A counting sort by row, $O(n + n_\text{rows})$, then a sort of each row that is not in order; the
    /// triplets and the matrix are in memory at once.
    /// # Errors
    /// [`LinalgError::Setting`] when there are more than 2³² rows, [`LinalgError::Device`] when the device
    /// has not the memory.
    pub fn into_csr<D: Device>(self, device: &D) -> Result<Gathered<T, D>, LinalgError> {
        number("rows", self.n_rows.saturating_sub(1))?;
        let (n_cols, n_pushed) = (self.n_cols, self.n_entries());
        let starts = starts(self.n_rows, &self.rows);
        let (mut columns, mut values) = self.by_row(&starts);
        let lengths = merge_rows(&starts, &mut columns, &mut values);
        let n_duplicates = n_pushed - values.len();
        let n_not_finite = values.iter().filter(|value| !value.is_finite()).count();
        let offsets = HostOffsets::from_row_lengths(lengths.iter().copied());
        let matrix = Csr::from_parts(device, n_cols, offsets, columns, values)?;
        Ok(Gathered { matrix, n_duplicates, n_not_finite })
    }

    /// Columns and values row after row, in the order of pushing within a row.
    fn by_row(self, starts: &[usize]) -> (Vec<u32>, Vec<T>) {
        let mut next = starts.to_vec();
        let (mut columns, mut values) = (vec![0; self.rows.len()], vec![T::ZERO; self.rows.len()]);
        for ((row, column), value) in self.rows.into_iter().zip(self.columns).zip(self.values) {
            let at = &mut next[row as usize];
            (columns[*at], values[*at]) = (column, value);
            *at += 1;
        }
        (columns, values)
    }
}

/// Where each of `n` rows begins among entries with these row numbers, and where the last one ends.
pub(super) fn starts(n: usize, rows: &[u32]) -> Vec<usize> {
    let mut starts = vec![0; n + 1];
    for &row in rows {
        starts[row as usize + 1] += 1;
    }
    for row in 0..n {
        starts[row + 1] += starts[row];
    }
    starts
}

/// Sorts each row, adds up its duplicates and closes the gaps; returns the number of entries of each row.
fn merge_rows<T: Scalar>(starts: &[usize], columns: &mut Vec<u32>, values: &mut Vec<T>) -> Vec<usize> {
    let mut row = Vec::new();
    let mut end = 0;
    let mut merge_row = |range: std::ops::Range<usize>| {
        let begin = end;
        row.clear();
        row.extend(range.map(|at| (columns[at], values[at])));
        if !row.is_sorted_by(|a, b| a.0 < b.0) {
            // A stable sort, so that duplicates stay in the order of pushing.
            row.sort_by_key(|&(column, _)| column);
        }
        for &(column, value) in &row {
            if end > begin && columns[end - 1] == column {
                values[end - 1] += value;
            } else {
                (columns[end], values[end]) = (column, value);
                end += 1;
            }
        }
        end - begin
    };
    let lengths = starts.windows(2).map(|ends| merge_row(ends[0]..ends[1])).collect();
    columns.truncate(end);
    values.truncate(end);
    lengths
}

/// A row or column as the 32-bit number that a sparse matrix keeps.
pub(super) fn number(field: &'static str, index: usize) -> Result<u32, LinalgError> {
    u32::try_from(index).map_err(|_| LinalgError::Setting {
        field,
        message: format!("number {index} does not fit 32 bits; sparse matrices have at most 2³² {field}"),
    })
}

#[cfg(test)]
mod tests {
    use femtile_device::Reference;
    use proptest::prelude::*;

    use super::*;

    fn gathered(n_rows: usize, n_cols: usize, entries: &[(usize, usize, f64)]) -> Gathered<f64, Reference> {
        let mut triplets = Triplets::new(n_rows, n_cols);
        for &(row, column, value) in entries {
            triplets.push(row, column, value).unwrap();
        }
        triplets.into_csr(&Reference).unwrap()
    }

    fn rows(matrix: &Csr<f64, Reference>) -> Vec<Vec<(usize, f64)>> {
        (0..matrix.n_rows()).map(|row| matrix.row(row).collect()).collect()
    }

    #[test]
    fn rows_come_out_sorted_and_empty_ones_stay() {
        let found = gathered(4, 5, &[(3, 4, 1.0), (0, 2, 2.0), (3, 0, 3.0), (0, 1, 4.0)]);
        assert_eq!(rows(&found.matrix), [vec![(1, 4.0), (2, 2.0)], vec![], vec![], vec![(0, 3.0), (4, 1.0)]]);
        assert_eq!((found.n_duplicates, found.n_not_finite), (0, 0));
    }

    #[test]
    fn duplicates_are_added_in_the_order_of_pushing() {
        let found = gathered(2, 2, &[(1, 1, 1.0), (1, 0, 5.0), (1, 1, 1e17), (1, 1, -1e17), (0, 0, 0.5)]);
        assert_eq!(rows(&found.matrix), [vec![(0, 0.5)], vec![(0, 5.0), (1, 1.0 + 1e17 - 1e17)]]);
        assert_eq!(found.n_duplicates, 2);
    }

    #[test]
    fn matrices_without_rows_columns_or_entries_are_matrices() {
        for (n_rows, n_cols) in [(0, 0), (0, 3), (3, 0), (3, 3)] {
            let found = gathered(n_rows, n_cols, &[]).matrix;
            assert_eq!((found.n_rows(), found.n_cols(), found.n_nonzeros()), (n_rows, n_cols, 0));
        }
    }

    #[test]
    fn one_row_one_column_and_a_full_row_are_kept_whole() {
        let full: Vec<_> = (0..7).rev().map(|column| (0, column, column as f64)).collect();
        let ascending: Vec<_> = (0..7).map(|column| (column, column as f64)).collect();
        assert_eq!(rows(&gathered(1, 7, &full).matrix), [ascending]);
        let column: Vec<_> = full.iter().map(|&(row, column, value)| (column, row, value)).collect();
        let found = gathered(7, 1, &column).matrix;
        assert!((0..7).all(|row| found.row(row).eq([(0, row as f64)])));
    }

    #[test]
    fn an_entry_outside_is_refused_with_row_column_and_value() {
        let mut triplets = Triplets::new(2, 3);
        let error = triplets.push(1, 3, 2.5).unwrap_err();
        assert_eq!(error, LinalgError::Entry { row: 1, column: 3, value: 2.5, n_rows: 2, n_cols: 3 });
        let error = triplets.push(2, 0, 2.5).unwrap_err().to_string();
        assert!(error.contains("row 2") && error.contains("column 0") && error.contains("2.5"), "{error}");
        assert_eq!(triplets.n_entries(), 0);
    }

    #[test]
    fn more_rows_than_can_be_numbered_are_refused() {
        let gathered = Triplets::<f64>::new(usize::MAX, 1).into_csr(&Reference);
        assert!(matches!(gathered, Err(LinalgError::Setting { field: "rows", .. })));
    }

    #[test]
    fn values_that_are_not_finite_are_kept_and_counted() {
        let found = gathered(1, 3, &[(0, 0, f64::NAN), (0, 1, 1.0), (0, 2, f64::INFINITY)]);
        assert_eq!((found.n_not_finite, found.matrix.n_nonzeros()), (2, 3));
    }

    proptest! {
        #[test]
        fn every_place_holds_the_sum_of_what_was_pushed_there(
            (n_rows, n_cols, entries) in (1..13_usize, 1..11_usize).prop_flat_map(|(n_rows, n_cols)| {
                let entry = (0..n_rows, 0..n_cols, (-4..5).prop_map(f64::from));
                (Just(n_rows), Just(n_cols), prop::collection::vec(entry, 0..60))
            })
        ) {
            let found = gathered(n_rows, n_cols, &entries);
            let mut dense = vec![None; n_rows * n_cols];
            for &(row, column, value) in &entries {
                *dense[row * n_cols + column].get_or_insert(0.0) += value;
            }
            for row in 0..n_rows {
                let expected = (0..n_cols).filter_map(|column| Some((column, dense[row * n_cols + column]?)));
                prop_assert!(found.matrix.row(row).eq(expected));
            }
            prop_assert_eq!(found.n_duplicates + found.matrix.n_nonzeros(), entries.len());
        }
    }
}
