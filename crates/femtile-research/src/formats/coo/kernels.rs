use femtile::device::{Buffer, Scalar};
use femtile::linalg::LinalgError;

use super::Coo;
use crate::formats::{HookKernels, TileKernels};

/// The act on a matrix in coordinates that a device carries out.
pub trait CooKernels<T: Scalar>: HookKernels<T> + TileKernels {
    /// $y = A x$, or $y \mathrel{+}= A x$ where `add`.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `y` or `x` do not fit.
    /// # Cost
    /// Reads 16 bytes a non-zero and 8 a row, writes 8 a row (f64); a GPU writes 8 a row more where
    /// some rows have no entries.
    fn coo_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Coo<T, Self>,
        x: &Buffer<T, Self>,
        add: bool,
    ) -> Result<(), LinalgError>;
}
