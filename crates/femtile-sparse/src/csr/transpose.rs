//! The transpose of a matrix and its entries one by one.

use femtile_device::{HostDevice, Scalar};
use femtile_linalg::LinalgError;

use super::{Csr, HostOffsets};
use crate::triplets::{Triplets, number, starts};

impl<T: Scalar, D: HostDevice> Csr<T, D> {
    /// The matrix $A^\mathsf{T}$ on the same device.
    ///
    /// # Cost
    /// $O(n_\text{nonzeros} + n_\text{rows} + n_\text{cols})$: one pass counts the columns, one moves the
    /// entries; rows are met in ascending order, so nothing is sorted.
    /// # Errors
    /// [`LinalgError::Setting`] when there are more than 2³² rows or columns, [`LinalgError::Device`]
    /// when the device has not the memory.
    pub fn transpose(&self) -> Result<Self, LinalgError> {
        number("rows", self.n_rows.saturating_sub(1))?;
        number("columns", self.n_cols.saturating_sub(1))?;
        let mut next = starts(self.n_cols, self.columns.as_slice());
        let lengths: Vec<usize> = next.windows(2).map(|ends| ends[1] - ends[0]).collect();
        let mut columns = vec![0; self.n_nonzeros()];
        let mut values = vec![T::ZERO; self.n_nonzeros()];
        for row in 0..self.n_rows {
            for (column, value) in self.row(row) {
                let at = &mut next[column];
                (columns[*at], values[*at]) = (row as u32, value);
                *at += 1;
            }
        }
        let offsets = HostOffsets::from_row_lengths(lengths.iter().copied());
        Self::from_parts(self.values.device(), self.n_rows, offsets, columns, values)
    }

    /// The stored entries, row after row.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when there are entries beyond the first 2³² rows.
    pub fn to_triplets(&self) -> Result<Triplets<T>, LinalgError> {
        let mut triplets = Triplets::new(self.n_rows, self.n_cols);
        for row in 0..self.n_rows {
            self.row(row).try_for_each(|(column, value)| triplets.push(row, column, value))?;
        }
        Ok(triplets)
    }
}

#[cfg(test)]
mod tests {
    use femtile_device::{Buffer, Reference};
    use proptest::prelude::*;

    use super::*;
    use femtile_linalg::LinearOperator;

    type Matrix = Csr<f64, Reference>;

    /// Small whole values, so that products and sums are exact in any order.
    fn matrices() -> impl Strategy<Value = Matrix> {
        (0..14_usize, 0..14_usize).prop_flat_map(|(n_rows, n_cols)| {
            let entry = (0..n_rows.max(1), 0..n_cols.max(1), -9..10_i32);
            let n_entries = if n_rows * n_cols == 0 { 0..1 } else { 0..80 };
            prop::collection::vec(entry, n_entries).prop_map(move |entries| {
                let mut triplets = Triplets::new(n_rows, n_cols);
                for (row, column, value) in entries {
                    triplets.push(row, column, f64::from(value)).unwrap();
                }
                triplets.into_csr(&Reference).unwrap().matrix
            })
        })
    }

    fn same(a: &Matrix, b: &Matrix) -> bool {
        (a.n_rows(), a.n_cols()) == (b.n_rows(), b.n_cols())
            && (0..a.n_rows()).all(|row| a.row(row).eq(b.row(row)))
    }

    fn product(a: &Matrix, x: &[f64]) -> Vec<f64> {
        let mut y = Buffer::from_vec(&Reference, vec![f64::NAN; a.n_rows()]).unwrap();
        a.apply(&mut y, &Buffer::from_host(&Reference, x).unwrap()).unwrap();
        y.as_slice().to_vec()
    }

    fn dot(x: &[f64], y: &[f64]) -> f64 {
        x.iter().zip(y).map(|(x, y)| x * y).sum()
    }

    #[test]
    fn a_wide_matrix_becomes_a_tall_one() -> Result<(), LinalgError> {
        let a = Csr::from_parts(&Reference, 4, vec![0, 2, 3].into(), vec![0, 3, 3], vec![1.0, 2.0, 3.0])?;
        let t = a.transpose()?;
        assert_eq!((t.n_rows(), t.n_cols()), (4, 2));
        let rows: Vec<Vec<_>> = (0..4).map(|row| t.row(row).collect()).collect();
        assert_eq!(rows, [vec![(0, 1.0)], vec![], vec![], vec![(0, 2.0), (1, 3.0)]]);
        Ok(())
    }

    proptest! {
        #[test]
        fn transposing_twice_gives_the_matrix_back(a in matrices()) {
            prop_assert!(same(&a.transpose().unwrap().transpose().unwrap(), &a));
        }

        #[test]
        fn a_product_may_be_moved_to_the_other_side(a in matrices(), seed in any::<u64>()) {
            let vector = |n: usize, k: u64| -> Vec<f64> {
                (0..n as u64).map(|i| ((seed % 997 + k * i) % 17) as f64 - 8.0).collect()
            };
            let (x, y) = (vector(a.n_cols(), 3), vector(a.n_rows(), 5));
            let t = a.transpose().unwrap();
            prop_assert_eq!(dot(&product(&a, &x), &y), dot(&x, &product(&t, &y)));
        }

        #[test]
        fn triplets_of_a_matrix_gather_to_the_same_matrix(a in matrices()) {
            let found = a.to_triplets().unwrap().into_csr(&Reference).unwrap();
            prop_assert!(same(&found.matrix, &a) && found.n_duplicates == 0);
        }
    }
}
