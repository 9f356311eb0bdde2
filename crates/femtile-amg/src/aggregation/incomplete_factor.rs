//! Incomplete LU factors without fill.

use crate::setup::rows::{RowAccess, Rows};

/// A pivot below this share of its diagonal entry is replaced by that entry: the row is then a step of Jacobi.
const LEAST_PIVOT: f64 = 0.05;
/// Stands for a column without entry.
const NONE: usize = usize::MAX;

/// Unit lower and upper triangular factors $L U \approx A$ on the pattern of A, ILU(0): $(L U)_{ij} = a_{ij}$ wherever A
/// has an entry.
///
/// # Source
/// `[meijerink1977]`.
#[derive(Debug)]
pub(super) struct IncompleteFactor {
    offsets: Vec<usize>,
    /// The place of the diagonal entry in each row.
    middles: Vec<usize>,
    columns: Vec<u32>,
    /// Entries of L without its diagonal, the inverse pivots, and the other entries of U.
    values: Vec<f64>,
}

impl IncompleteFactor {
    /// Factorizes a matrix of ascending columns and a symmetric pattern with positive diagonal entries.
    ///
    /// # Cost
    /// For each entry of L the entries of a row of U: some 90 operations per row of 7 entries, 350 per row of 27.
    pub fn new(a: &Rows<f64>) -> Self {
        let (n, Rows { offsets, columns, values, .. }) = (a.n_rows(), a.clone());
        let middle =
            |row: usize| offsets[row] + a.row(row).0.partition_point(|&column| (column as usize) < row);
        let middles: Vec<usize> = (0..n).map(middle).collect();
        let mut factor = Self { offsets, middles, columns, values };
        let mut places = vec![NONE; n];
        for row in 0..n {
            factor.eliminate(row, &mut places);
        }
        factor
    }

    /// Eliminates a row by those before it; `places` is without entries before and after.
    fn eliminate(&mut self, row: usize, places: &mut [usize]) {
        let Self { offsets, middles, columns, values } = self;
        let (range, middle) = (offsets[row]..offsets[row + 1], middles[row]);
        range.clone().for_each(|at| places[columns[at] as usize] = at);
        let own = values[middle];
        for at in range.start..middle {
            let above = columns[at] as usize;
            let factor = values[at] * values[middles[above]];
            values[at] = factor;
            for from in middles[above] + 1..offsets[above + 1] {
                let place = places[columns[from] as usize];
                if place != NONE {
                    values[place] -= factor * values[from];
                }
            }
        }
        let pivot = values[middle];
        values[middle] = 1.0 / if pivot >= LEAST_PIVOT * own { pivot } else { own };
        range.for_each(|at| places[columns[at] as usize] = NONE);
    }

    /// Solves $L U x = b$ for b in `x`.
    ///
    /// # Cost
    /// Reads 12 bytes per entry of A.
    pub fn solve(&self, x: &mut [f64]) {
        let sum = |x: &[f64], range: std::ops::Range<usize>| -> f64 {
            let entries = self.columns[range.clone()].iter().zip(&self.values[range]);
            entries.map(|(&column, value)| value * x[column as usize]).sum()
        };
        for (row, &middle) in self.middles.iter().enumerate() {
            x[row] -= sum(x, self.offsets[row]..middle);
        }
        for (row, &middle) in self.middles.iter().enumerate().rev() {
            x[row] = self.values[middle] * (x[row] - sum(x, middle + 1..self.offsets[row + 1]));
        }
    }
}
