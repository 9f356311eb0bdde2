use femtile::device::{Buffer, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::sparse::SparseKernels;
use femtile::linalg::sparse::choice::Described;

use super::{Coo, Ell, Merge};

/// A device with the products of the compared formats.
pub trait FormatKernels<T: Scalar>: SparseKernels<T> + Described {
    /// Returns the entries of a tile, in products that divide the entries of a matrix, not its rows, into equal tiles.
    fn tile_entries(&self) -> usize;

    /// Returns the number of open sums at the ends of tiles in a product of `n_entries` entries.
    fn tile_carries(&self, n_entries: usize) -> usize;

    /// $y = A x$.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `y` or `x` do not fit.
    /// # Cost
    /// Reads 12 bytes a stored entry and 8 a row, writes 8 a row (f64).
    fn ell_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Ell<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;

    /// $y \mathrel{+}= A x$.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `y` or `x` do not fit.
    /// # Cost
    /// Reads 16 bytes a non-zero and 8 a row, writes 8 a row (f64).
    fn coo_add(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Coo<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;

    /// $y = A x$.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `y` or `x` do not fit.
    /// # Cost
    /// Reads 12 bytes a non-zero and 12 a row, writes 8 a row (f64).
    fn merge_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Merge<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;
}
