use femtile::device::{Buffer, Scalar};
use femtile::linalg::LinalgError;

use super::Merge;
use crate::formats::{HookKernels, TileKernels};

/// The act on a CSR matrix cut into tiles of entries that a device carries out.
pub trait MergeKernels<T: Scalar>: HookKernels<T> + TileKernels {
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
