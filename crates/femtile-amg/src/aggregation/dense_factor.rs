//! The coarsest level: LU factors of a dense matrix.

use crate::setup::rows::{RowAccess, Rows};

/// A pivot below this share of the largest entry is taken for zero, and its unknown set to zero.
const SINGULAR: f64 = 1e-13;

/// Factors $\Pi A = L U$ by partial pivoting.
#[derive(Debug)]
pub(super) struct DenseFactor {
    /// Rows of L without its diagonal, the inverse pivots (0 for zero pivots), and the other entries of U.
    rows: Vec<Vec<f64>>,
    /// The row that was exchanged with each row in turn.
    exchanged: Vec<usize>,
}

impl DenseFactor {
    /// Factorizes a square matrix.
    ///
    /// # Cost
    /// $2 n^3 / 3$ operations.
    /// # Source
    /// `[golub2013]`, Alg. 3.4.1.
    pub fn new(a: &Rows<f64>) -> Self {
        let n = a.n_rows();
        let mut rows = vec![vec![0.0; n]; n];
        for (i, row) in rows.iter_mut().enumerate() {
            let (columns, values) = a.row(i);
            columns.iter().zip(values).for_each(|(&column, &value)| row[column as usize] = value);
        }
        let least = SINGULAR * a.values.iter().fold(0.0, |most, value| value.abs().max(most));
        let mut exchanged = Vec::with_capacity(n);
        for k in 0..n {
            let largest = (k..n).max_by(|&i, &j| rows[i][k].abs().total_cmp(&rows[j][k].abs())).unwrap_or(k);
            rows.swap(k, largest);
            exchanged.push(largest);
            let (above, below) = rows.split_at_mut(k + 1);
            let pivot_row = &mut above[k];
            pivot_row[k] = if pivot_row[k].abs() > least { 1.0 / pivot_row[k] } else { 0.0 };
            for row in below {
                let factor = row[k] * pivot_row[k];
                row[k] = factor;
                row[k + 1..].iter_mut().zip(&pivot_row[k + 1..]).for_each(|(to, from)| *to -= factor * from);
            }
        }
        Self { rows, exchanged }
    }

    /// Returns the number of rows.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// Solves $A x = b$ for b in `x`.
    pub fn solve(&self, x: &mut [f64]) {
        self.exchanged.iter().enumerate().for_each(|(k, &other)| x.swap(k, other));
        let sum = |row: &[f64], x: &[f64]| row.iter().zip(x).map(|(entry, x)| entry * x).sum::<f64>();
        for (i, row) in self.rows.iter().enumerate() {
            x[i] -= sum(&row[..i], &x[..i]);
        }
        for (i, row) in self.rows.iter().enumerate().rev() {
            x[i] = row[i] * (x[i] - sum(&row[i + 1..], &x[i + 1..]));
        }
    }
}
