//! Small dense matrices on the host.

use std::ops::{Index, IndexMut, Range};

/// A small dense matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct Dense {
    n_columns: usize,
    /// Row by row.
    values: Vec<f64>,
}

impl Index<(usize, usize)> for Dense {
    type Output = f64;

    fn index(&self, (row, column): (usize, usize)) -> &f64 {
        &self.values[row * self.n_columns + column]
    }
}

impl IndexMut<(usize, usize)> for Dense {
    fn index_mut(&mut self, (row, column): (usize, usize)) -> &mut f64 {
        &mut self.values[row * self.n_columns + column]
    }
}

impl Dense {
    /// Makes a matrix of the entries at (row, column).
    pub fn of([n_rows, n_columns]: [usize; 2], entry: impl Fn(usize, usize) -> f64) -> Self {
        let entry = &entry;
        let values = (0..n_rows).flat_map(|row| (0..n_columns).map(move |column| entry(row, column)));
        Self { n_columns, values: values.collect() }
    }

    /// Makes a matrix of its entries row by row.
    pub(super) fn of_values(n_columns: usize, values: Vec<f64>) -> Self {
        Self { n_columns, values }
    }

    /// Returns the entries row by row.
    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns the number of rows; zero of a matrix without columns.
    pub fn n_rows(&self) -> usize {
        self.values.len().checked_div(self.n_columns).unwrap_or(0)
    }

    /// Returns the number of columns.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Returns some of the columns.
    pub(super) fn columns(&self, range: Range<usize>) -> Self {
        Self::of([self.n_rows(), range.len()], |row, column| self[(row, range.start + column)])
    }

    /// Returns the product with another matrix.
    pub(super) fn times(&self, other: &Self) -> Self {
        let mut product = Self::of([self.n_rows(), other.n_columns], |_, _| 0.0);
        for (row, sums) in product.values.chunks_exact_mut(other.n_columns.max(1)).enumerate() {
            for (k, terms) in other.values.chunks_exact(other.n_columns.max(1)).enumerate() {
                let factor = self[(row, k)];
                sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += factor * term);
            }
        }
        product
    }

    /// Returns the transpose.
    pub(super) fn transpose(&self) -> Self {
        Self::of([self.n_columns, self.n_rows()], |row, column| self[(column, row)])
    }

    /// Replaces rows p and q by $c\,p - s\,q$ and $s\,p + c\,q$.
    fn rotate(&mut self, [p, q]: [usize; 2], [c, s]: [f64; 2]) {
        let n = self.n_columns;
        let (before, rest) = self.values.split_at_mut(q * n);
        for (p, q) in before[p * n..][..n].iter_mut().zip(&mut rest[..n]) {
            (*p, *q) = (c * *p - s * *q, s * *p + c * *q);
        }
    }
}

/// Sweeps of Jacobi's method, more than are ever needed.
const SWEEPS: usize = 40;

/// Returns the eigenvalues of a symmetric matrix, ascending, and eigenvectors of length one in the columns of a matrix, by Jacobi's
/// method; only the mean of mirrored entries counts. Small eigenvalues of a graded positive definite matrix keep their digits.
///
/// # Source
/// `[golub2013]`, section 8.5, cyclic by row. Differs: an entry is zero once it is below the rounding of the geometric mean of its
/// diagonal entries.
pub fn symmetric_eigen(a: &Dense) -> (Vec<f64>, Dense) {
    let n = a.n_columns;
    let mut a = Dense::of([n, n], |row, column| 0.5 * (a[(row, column)] + a[(column, row)]));
    // Eigenvectors in rows.
    let mut vectors = Dense::of([n, n], |row, column| f64::from(u8::from(row == column)));
    for _ in 0..SWEEPS {
        let mut is_done = true;
        for p in 0..n {
            for q in p + 1..n {
                let (app, aqq, apq) = (a[(p, p)], a[(q, q)], a[(p, q)]);
                if apq.abs() <= f64::EPSILON * (app.abs().sqrt() * aqq.abs().sqrt()) {
                    continue;
                }
                is_done = false;
                let theta = (aqq - app) / (2.0 * apq);
                let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let rotation = [c, t * c];
                a.rotate([p, q], rotation);
                for k in 0..n {
                    (a[(k, p)], a[(k, q)]) = (a[(p, k)], a[(q, k)]);
                }
                (a[(p, p)], a[(q, q)]) = (app - t * apq, aqq + t * apq);
                (a[(p, q)], a[(q, p)]) = (0.0, 0.0);
                vectors.rotate([p, q], rotation);
            }
        }
        if is_done {
            break;
        }
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&i, &j| a[(i, i)].total_cmp(&a[(j, j)]));
    let values = order.iter().map(|&i| a[(i, i)]).collect();
    (values, Dense::of([n, n], |row, column| vectors[(order[column], row)]))
}
