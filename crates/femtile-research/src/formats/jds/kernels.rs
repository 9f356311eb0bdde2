use femtile::device::{Buffer, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::hooks::Hook;

use super::Jds;
use crate::formats::HookKernels;

/// The act on a matrix in padded jagged diagonals that a device carries out.
pub trait JdsKernels<T: Scalar>: HookKernels<T> {
    /// $y = A x$ with the calls that [`Hook`] promises.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `y` or `x` do not fit.
    /// # Cost
    /// Reads 12 bytes a non-zero and 16 a row, writes 8 a row (f64).
    fn jds_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Jds<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError>;
}
