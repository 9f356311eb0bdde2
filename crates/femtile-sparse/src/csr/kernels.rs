use femtile_device::{Buffer, Device, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::hooks::Hook;

use super::Csr;

/// The acts on a CSR matrix that a device carries out.
pub trait CsrKernels<T: Scalar>: Device {
    /// $y = A x$ with the calls that [`Hook`] promises.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `y` or `x` do not fit.
    /// # Cost
    /// Reads 12 bytes a non-zero and 12 a row, writes 8 a row (f64).
    fn csr_apply(
        &self,
        y: &mut Buffer<T, Self>,
        a: &Csr<T, Self>,
        x: &Buffer<T, Self>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError>;

    /// $d_i = 1 / a_{ii}$ for every row.
    ///
    /// # Errors
    /// [`LinalgError::Diagonal`] naming the first row whose diagonal entry is not positive and finite.
    fn csr_inverse_diagonal(&self, d: &mut Buffer<T, Self>, a: &Csr<T, Self>) -> Result<(), LinalgError>;
}
