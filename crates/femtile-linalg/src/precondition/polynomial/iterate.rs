use femtile_device::{Buffer, Scalar};

use super::{PolynomialKernels, Relaxed, Step};
use crate::{LinalgError, LinearOperator, Preconditioner};

/// An iterate for $A x = b$ with the workspace of polynomial smoothers.
#[derive(Debug)]
pub struct Iterate<T: Scalar, D: PolynomialKernels<T>> {
    /// The right side.
    pub b: Buffer<T, D>,
    /// The iterate.
    pub x: Buffer<T, D>,
    /// Room for the next iterate, or for a residual.
    pub next: Buffer<T, D>,
    /// The last step.
    pub direction: Buffer<T, D>,
    /// Room for products.
    pub product: Buffer<T, D>,
}

impl<T: Scalar, D: PolynomialKernels<T>> Iterate<T, D> {
    /// For systems of `n` rows.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn zeros(device: &D, n: usize) -> Result<Self, LinalgError> {
        let zeros = || Buffer::zeros(device, n);
        Ok(Self { b: zeros()?, x: zeros()?, next: zeros()?, direction: zeros()?, product: zeros()? })
    }

    /// Takes the steps from zero, whatever `x` was; the first of them needs no product.
    ///
    /// # Errors
    /// Errors of the operator.
    pub fn relax_from_zero(
        &mut self,
        a: &dyn LinearOperator<T, D>,
        steps: &[Step<T>],
        inverse_diagonal: &Buffer<T, D>,
    ) -> Result<(), LinalgError> {
        let Some((first, rest)) = steps.split_first() else { return Ok(()) };
        a.device().relax_from_zero(&mut self.x, &mut self.direction, *first, inverse_diagonal, &self.b)?;
        self.relax(a, rest, inverse_diagonal)
    }

    /// Takes the steps, a product each.
    ///
    /// # Errors
    /// Errors of the operator.
    pub fn relax(
        &mut self,
        a: &dyn LinearOperator<T, D>,
        steps: &[Step<T>],
        inverse_diagonal: &Buffer<T, D>,
    ) -> Result<(), LinalgError> {
        for &step in steps {
            let vectors = Relaxed {
                b: &self.b,
                inverse_diagonal,
                x: &self.x,
                next: &mut self.next,
                direction: &mut self.direction,
                product: &mut self.product,
            };
            a.device().relax(a, step, vectors)?;
            std::mem::swap(&mut self.x, &mut self.next);
        }
        Ok(())
    }

    /// As [`Iterate::relax_from_zero`] with $M^{-1}$ instead of the inverse diagonal.
    ///
    /// # Errors
    /// Errors of the operator and of M.
    pub fn relax_from_zero_by(
        &mut self,
        a: &dyn LinearOperator<T, D>,
        steps: &[Step<T>],
        m: &dyn Preconditioner<T, D>,
    ) -> Result<(), LinalgError> {
        let Some((first, rest)) = steps.split_first() else { return Ok(()) };
        m.apply(&mut self.product, &self.b)?;
        a.device().fill(&mut self.x, T::ZERO)?;
        self.advance(a.device(), *first)?;
        self.relax_by(a, rest, m)
    }

    /// As [`Iterate::relax`] with $M^{-1}$ instead of the inverse diagonal.
    ///
    /// # Errors
    /// Errors of the operator and of M.
    pub fn relax_by(
        &mut self,
        a: &dyn LinearOperator<T, D>,
        steps: &[Step<T>],
        m: &dyn Preconditioner<T, D>,
    ) -> Result<(), LinalgError> {
        for &step in steps {
            self.residual(a)?;
            m.apply(&mut self.product, &self.next)?;
            self.advance(a.device(), step)?;
        }
        Ok(())
    }

    /// Updates $d = \beta d + \alpha M^{-1} r$ and $x = x + d$ with the $M^{-1} r$ in `product`.
    fn advance(&mut self, device: &D, Step { alpha, beta, .. }: Step<T>) -> Result<(), LinalgError> {
        if beta == T::ZERO {
            device.fill(&mut self.direction, T::ZERO)?;
        }
        device.axpby(&mut self.direction, alpha, &self.product, beta)?;
        device.axpby(&mut self.x, T::ONE, &self.direction, T::ONE)
    }

    /// $r = b - A x$ into `next`.
    ///
    /// # Errors
    /// Errors of the operator.
    pub fn residual(&mut self, a: &dyn LinearOperator<T, D>) -> Result<(), LinalgError> {
        a.device().relax_residual(&mut self.next, &mut self.product, a, &self.x, &self.b)
    }
}
