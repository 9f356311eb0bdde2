use femtile::device::{Buffer, Scalar};
use femtile::linalg::LinalgError;
use femtile::linalg::hooks::Hook;

use super::Ell;
use crate::formats::HookKernels;

/// The act on an ELLPACK matrix that a device carries out.
pub trait EllKernels<T: Scalar>: HookKernels<T> {
    /// $y = A x$ with the calls that [`Hook`] promises.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `y` or `x` do not fit.
    /// # Cost
    /// Reads 12 bytes a non-zero and 12 a row, writes 8 a row (f64, with lengths).
    fn ell_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Ell<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError>;
}
