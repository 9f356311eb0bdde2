//! The prolongator: the tentative one, smoothed once.

use femtile_device::Scalar;

use super::graph::{Aggregates, NONE};
use super::rows::{Pieces, Row, RowAccess, Rows, sort_row};
use super::spectrum::PROLONGED;

/// Longer rows omit weak entries even with several vectors, or dense rows would fill the product.
const LONG_ROW: usize = 4_096;

/// Input of a smoothed prolongator.
#[derive(Debug)]
pub(crate) struct Smoothing<'a, T> {
    pub a: &'a Rows<T>,
    /// As [`super::strength::Strength::is_strong`].
    pub is_strong: &'a [bool],
    /// Flags nodes with dense rows; empty if there are none. They are nodes of their own on every level:
    /// their rows stay tentative, and no other row is smoothed by them.
    pub is_dense: &'a [bool],
    pub aggregates: &'a Aggregates,
    /// The values of the tentative prolongator, as [`super::tentative::Tentative::values`].
    pub tentative: &'a [T],
    /// As [`super::tentative::NearNullspace::n_vectors`].
    pub n_vectors: usize,
    /// The near-nullspace, as [`super::tentative::NearNullspace::values`].
    pub b: &'a [f64],
    /// Rows of a node.
    pub block: usize,
    /// As [`super::spectrum::Scaling::largest`].
    pub largest: f64,
    /// As [`super::spectrum::Scaling::most`].
    pub most: f64,
}

impl<T: Scalar> Smoothing<'_, T> {
    /// Returns $P = (I - \frac{1.4}{\lambda} D_F^{-1} A_F) \tilde P$ with ascending columns. $A_F$ has the
    /// weak entries of A added to its diagonal $D_F$, raised as in [`super::spectrum::Scaling`]. A weak entry
    /// counts times $b_j / b_i$, so that $A_F b = A b$ for the near-nullspace b, which is not constant on
    /// coarser levels. Otherwise P would not reproduce b, and on flat cells smooth vectors would get the
    /// energy of oscillating ones. Rows of nodes in no aggregate stay empty. With several vectors $A_F = A$:
    /// a weak entry has another factor for each vector, so no single number on the diagonal represents it.
    ///
    /// # Source
    /// `[fu2014]`, eq. (6); `[vanek1996]`, section 4, for filter and damping.
    pub fn prolongator(&self) -> Rows<T> {
        let k = self.n_vectors;
        let n_cols = self.aggregates.n * k;
        let scratch = || (Row::new(n_cols), Vec::new());
        let pieces = Pieces::build([self.a.n_rows(), n_cols], scratch, |(sums, pairs), row, out| {
            if self.aggregate_of(row) == NONE {
                return;
            }
            let range = self.a.offsets[row]..self.a.offsets[row + 1];
            let (columns, values) = (&self.a.columns[range.clone()], &self.a.values[range.clone()]);
            let flags = &self.is_strong[range];
            sums.start(k * (columns.len() + 1));
            let mut add = |row: usize, factor: T| {
                let aggregate = self.aggregate_of(row);
                if aggregate == NONE {
                    return;
                }
                for (v, &q) in self.tentative[k * row..k * (row + 1)].iter().enumerate() {
                    sums.add(&[aggregate * k as u32 + v as u32], &[q], factor);
                }
            };
            let is_dense = self.is_dense(row);
            let is_whole = k > 1 && columns.len() <= LONG_ROW && !is_dense;
            let (mut own, mut others) = (T::ZERO, T::ZERO);
            for ((&column, &value), &flag) in columns.iter().zip(values).zip(flags) {
                let counts = flag || (is_whole && !self.is_dense(column as usize));
                if counts && column as usize != row {
                    add(column as usize, -value);
                    others += value.abs();
                } else {
                    own += value * self.ratio(row, column as usize);
                }
            }
            // (D / ω − A_F) q, over D / ω; a row whose weak entries outweigh its diagonal stays tentative.
            let least = T::from_f64(1.0 / self.most) * (own + others);
            let raised = if least > own { least } else { own };
            let (bound, is_smoothed) =
                (raised * T::from_f64(self.largest / PROLONGED), own > T::ZERO && !is_dense);
            add(row, if is_smoothed { bound - own } else { T::ZERO });
            let scale = T::ONE / bound;
            let (columns, values) = sums.entries();
            if is_smoothed {
                values.iter_mut().for_each(|value| *value *= scale);
            } else {
                self.set_tentative(row, columns, values);
            }
            sort_row(columns, values, pairs);
            out.extend(columns, values);
        });
        pieces.join()
    }

    #[inline(always)]
    fn is_dense(&self, row: usize) -> bool {
        !self.is_dense.is_empty() && self.is_dense[row / self.block]
    }

    /// Replaces a row by that of the tentative prolongator.
    #[cold]
    fn set_tentative(&self, row: usize, columns: &[u32], values: &mut [T]) {
        let k = self.n_vectors;
        let first = self.aggregate_of(row) as usize * k;
        for (&column, value) in columns.iter().zip(values) {
            let vector = (column as usize).wrapping_sub(first);
            *value = if vector < k { self.tentative[k * row + vector] } else { T::ZERO };
        }
    }

    /// Returns the factor of a weak entry on the diagonal.
    #[inline(always)]
    fn ratio(&self, row: usize, column: usize) -> T {
        let is_scalar = self.n_vectors == 1 && column != row && self.b[row] != 0.0;
        if is_scalar { T::from_f64(self.b[column] / self.b[row]) } else { T::ONE }
    }

    #[inline(always)]
    fn aggregate_of(&self, row: usize) -> u32 {
        self.aggregates.of_node[if self.block == 1 { row } else { row / self.block }]
    }
}
