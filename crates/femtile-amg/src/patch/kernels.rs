use femtile_device::{Buffer, Device, Scalar};
use femtile_linalg::LinalgError;

use super::PatchMatrix;

/// The patch smoother, additive Schwarz without overlap. A step is $x = x + \omega M^{-1} (b - A x)$.
/// $M^{-1}$ is `inner` damped Jacobi iterations from zero on each block $A_{kk}$, $g = g + S (r - A_{kk} g)$.
#[derive(Debug)]
pub struct PatchSmoother<'a, H: Scalar, D: Device> {
    /// The matrix.
    pub matrix: &'a PatchMatrix<H, D>,
    /// S: the reciprocals of the diagonal, times the damping of the inner iterations.
    pub scale: &'a Buffer<H, D>,
    /// Inner iterations, at least one.
    pub inner: usize,
    /// The outer damping.
    pub omega: H,
}

/// The kernels of the patch smoother.
///
/// # Errors
/// [`LinalgError::Length`] for vectors without an entry for each row.
pub trait PatchKernels<H: Scalar>: Device {
    /// Computes a step from zero and the part of its residual within patches:
    /// $x = \omega M^{-1} b$, $\tilde r = b - (A_I + A_D) x$.
    ///
    /// # Cost
    /// Reads $A_I$ once and three values per row, writes two; `inner` products with $A_I$ in fast memory.
    /// # Source
    /// `[fu2014]`, section 5.2.2, the kernel prerelax-residual of Algorithm 5.3.
    fn patch_relax_from_zero(
        &self,
        x: &mut Buffer<H, Self>,
        r: &mut Buffer<H, Self>,
        by: PatchSmoother<'_, H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError>;

    /// Computes a step from `x` with a right side from which the contribution of other patches was subtracted:
    /// $x = x + \omega M^{-1} (\tilde b - (A_I + A_D) x)$.
    ///
    /// # Cost
    /// Reads $A_I$ once and four values per row, and writes one; `inner` products with $A_I$ in fast memory.
    /// # Source
    /// `[fu2014]`, section 5.2.2, the kernel post-relax of Algorithm 5.3.
    fn patch_relax(
        &self,
        x: &mut Buffer<H, Self>,
        by: PatchSmoother<'_, H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError>;

    /// Computes $y = y - A_B x$: the correction of the residual after a step from zero, and of the right side
    /// before a step.
    ///
    /// # Cost
    /// Reads $A_B$, and x in its non-empty columns; reads and writes y in its non-empty rows.
    fn patch_subtract_outside(
        &self,
        y: &mut Buffer<H, Self>,
        matrix: &PatchMatrix<H, Self>,
        x: &Buffer<H, Self>,
    ) -> Result<(), LinalgError>;
}
