use femtile_device::{Buffer, Device, Scalar};

use crate::vector::VectorKernels;
use crate::{LinalgError, LinearOperator, error::need};

/// A step of a smoother: $d = \beta d + \alpha D^{-1} (b - A x)$, $x = x + d$.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step<T> {
    /// Coefficient of the scaled residual.
    pub alpha: T,
    /// Coefficient of the step before, which is not read if this is zero.
    pub beta: T,
    /// Whether another step reads this one.
    pub is_kept: bool,
}

/// The vectors that a smoother works on.
#[derive(Debug)]
pub struct Relaxed<'a, T: Scalar, D: PolynomialKernels<T>> {
    /// The right side.
    pub b: &'a Buffer<T, D>,
    /// The reciprocals of the diagonal.
    pub inverse_diagonal: &'a Buffer<T, D>,
    /// The iterate before the step.
    pub x: &'a Buffer<T, D>,
    /// The iterate after it.
    pub next: &'a mut Buffer<T, D>,
    /// The last step.
    pub direction: &'a mut Buffer<T, D>,
    /// Room for the product.
    pub product: &'a mut Buffer<T, D>,
}

/// Refuses vectors that are not as long as the right side.
pub(super) fn need_vectors<T: Scalar, D: Device, const N: usize>(
    b: &Buffer<T, D>,
    vectors: [(&'static str, &Buffer<T, D>); N],
) -> Result<(), LinalgError> {
    vectors.into_iter().try_for_each(|(field, vector)| need(field, b.len(), vector.len()))
}

/// Refuses the vectors of a step if they differ in length.
pub(super) fn need_relaxed<T: Scalar, D: PolynomialKernels<T>>(
    Relaxed { b, inverse_diagonal, x, next, direction, product }: &Relaxed<'_, T, D>,
) -> Result<(), LinalgError> {
    let inputs = [("inverse_diagonal", *inverse_diagonal), ("x", *x)];
    need_vectors(b, inputs)?;
    need_vectors(b, [("next", &**next), ("direction", &**direction), ("product", &**product)])
}

/// The acts of polynomial smoothers.
///
/// # Errors
/// [`LinalgError::Length`] when vectors of one call differ in length.
pub trait PolynomialKernels<T: Scalar>: VectorKernels<T> {
    /// $x = \alpha D^{-1} b$: the first step from zero; into `direction` as well if it is kept.
    ///
    /// # Cost
    /// Reads 2n values, writes n, and n more if the step is kept.
    fn relax_from_zero(
        &self,
        x: &mut Buffer<T, Self>,
        direction: &mut Buffer<T, Self>,
        step: Step<T>,
        inverse_diagonal: &Buffer<T, Self>,
        b: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;

    /// A [`Step`] of a smoother, in the pass of the product.
    ///
    /// # Cost
    /// One product; in addition reads 3n values and writes 2n, and n more are written and read if steps are
    /// kept.
    fn relax(
        &self,
        a: &dyn LinearOperator<T, Self>,
        step: Step<T>,
        vectors: Relaxed<'_, T, Self>,
    ) -> Result<(), LinalgError>;

    /// $r = b - A x$, in the pass of the product, with `product` as workspace.
    ///
    /// # Cost
    /// One product; reads n values beside it, writes n.
    fn relax_residual(
        &self,
        r: &mut Buffer<T, Self>,
        product: &mut Buffer<T, Self>,
        a: &dyn LinearOperator<T, Self>,
        x: &Buffer<T, Self>,
        b: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;
}
