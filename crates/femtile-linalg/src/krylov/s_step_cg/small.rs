//! Matrices with a row and a column for each step of a block.

use std::ops::{Index, IndexMut};

use super::MAX_STEPS;

/// One number per step of a block.
pub(super) type SmallVector = [f64; MAX_STEPS];

/// A small matrix by rows; entries beyond the steps of a block are ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct SmallMatrix([SmallVector; MAX_STEPS]);

impl Index<(usize, usize)> for SmallMatrix {
    type Output = f64;

    fn index(&self, (row, column): (usize, usize)) -> &f64 {
        &self.0[row][column]
    }
}

impl IndexMut<(usize, usize)> for SmallMatrix {
    fn index_mut(&mut self, (row, column): (usize, usize)) -> &mut f64 {
        &mut self.0[row][column]
    }
}

#[cfg(test)]
impl SmallMatrix {
    pub(super) fn from_rows(rows: &[&[f64]]) -> Self {
        let mut matrix = Self::default();
        for (i, row) in rows.iter().enumerate() {
            row.iter().enumerate().for_each(|(j, value)| matrix[(i, j)] = *value);
        }
        matrix
    }
}

/// The lower Cholesky factor of the largest positive definite leading block of a matrix.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Factor {
    lower: SmallMatrix,
    /// Rows that it has.
    pub rank: usize,
}

impl Factor {
    /// Factors the first `n` rows and columns of a symmetric matrix; only the upper half is read. Also
    /// returns the first pivot that is no more than `tolerance` of its diagonal entry, if there is one.
    ///
    /// The test is the same however rows and columns are scaled.
    /// # Source
    /// `[golub2013]`, section 4.2.
    pub fn new(a: &SmallMatrix, n: usize, tolerance: f64) -> (Self, Option<f64>) {
        let mut factor = Self::default();
        let lower = &mut factor.lower;
        for i in 0..n {
            for j in 0..i {
                let known: f64 = (0..j).map(|k| lower[(i, k)] * lower[(j, k)]).sum();
                lower[(i, j)] = (a[(j, i)] - known) / lower[(j, j)];
            }
            let pivot = a[(i, i)] - (0..i).map(|k| lower[(i, k)].powi(2)).sum::<f64>();
            let is_sound = pivot > tolerance * a[(i, i)] && pivot > 0.0 && pivot.is_finite();
            if !is_sound {
                return (factor, Some(pivot));
            }
            lower[(i, i)] = pivot.sqrt();
            factor.rank = i + 1;
        }
        (factor, None)
    }

    /// Replaces the first entries of `x`, one per row, by the solution, and the others by zero.
    pub fn solve(&self, x: &mut SmallVector) {
        self.solve_lower(x);
        self.solve_upper(x);
        x[self.rank..].fill(0.0);
    }

    /// Replaces the first entries of `x` by $L^{-1} x$.
    pub fn solve_lower(&self, x: &mut SmallVector) {
        for i in 0..self.rank {
            let known: f64 = (0..i).map(|k| self.lower[(i, k)] * x[k]).sum();
            x[i] = (x[i] - known) / self.lower[(i, i)];
        }
    }

    /// Replaces the first entries of `x` by $L^{-\mathsf{T}} x$.
    pub fn solve_upper(&self, x: &mut SmallVector) {
        let (lower, n) = (&self.lower, self.rank);
        for i in (0..n).rev() {
            let known: f64 = (i + 1..n).map(|k| lower[(k, i)] * x[k]).sum();
            x[i] = (x[i] - known) / lower[(i, i)];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(rows: &[&[f64]], tolerance: f64) -> (Factor, Option<f64>) {
        Factor::new(&SmallMatrix::from_rows(rows), rows.len(), tolerance)
    }

    #[test]
    fn a_positive_definite_matrix_is_solved() {
        let (factor, pivot) = factor(&[&[4.0, 2.0, 0.0], &[2.0, 5.0, 2.0], &[0.0, 2.0, 2.0]], 1e-14);
        assert_eq!((factor.rank, pivot), (3, None));
        let mut x = [8.0, 18.0, 10.0, 7.0, 7.0, 7.0];
        factor.solve(&mut x);
        assert_eq!(x, [1.0, 2.0, 3.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn the_leading_rows_serve_where_a_pivot_is_not_positive() {
        let (leading, pivot) = factor(&[&[4.0, 2.0, 2.0], &[2.0, 1.0, 1.0], &[2.0, 1.0, 9.0]], 1e-14);
        assert_eq!((leading.rank, pivot), (1, Some(0.0)));
        let mut x = [2.0; MAX_STEPS];
        leading.solve(&mut x);
        assert_eq!(x, [0.5, 0.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(factor(&[&[f64::NAN]], 1e-14).0.rank, 0);
        assert_eq!(factor(&[&[-1.0]], 1e-14).1, Some(-1.0));
    }

    #[test]
    fn scaling_rows_and_columns_alike_changes_no_verdict() {
        let rows: [&[f64]; 2] = [&[1e40, 1e20], &[1e20, 1.0 + 1e-9]];
        assert_eq!(factor(&rows, 1e-14).0.rank, 2);
        assert_eq!(factor(&rows, 1e-8).0.rank, 1);
    }
}
