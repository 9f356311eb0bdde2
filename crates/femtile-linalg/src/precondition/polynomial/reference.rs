//! The acts of polynomial smoothers by plain loops: the oracle.

use femtile_device::{Buffer, Reference, Scalar};

use super::{PolynomialKernels, Relaxed, Step};
use crate::{LinalgError, LinearOperator};

impl<T: Scalar> PolynomialKernels<T> for Reference {
    fn relax_from_zero(
        &self,
        x: &mut Buffer<T, Self>,
        direction: &mut Buffer<T, Self>,
        step: Step<T>,
        inverse_diagonal: &Buffer<T, Self>,
        b: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        for i in 0..b.len() {
            x.as_mut_slice()[i] = step.alpha * (inverse_diagonal.as_slice()[i] * b.as_slice()[i]);
        }
        if step.is_kept {
            direction.as_mut_slice().copy_from_slice(x.as_slice());
        }
        Ok(())
    }

    fn relax(
        &self,
        a: &dyn LinearOperator<T, Self>,
        Step { alpha, beta, .. }: Step<T>,
        vectors: Relaxed<'_, T, Self>,
    ) -> Result<(), LinalgError> {
        let Relaxed { b, inverse_diagonal, x, next, direction, product } = vectors;
        a.apply(product, x)?;
        for i in 0..b.len() {
            let residual = b.as_slice()[i] - product.as_slice()[i];
            let before = if beta == T::ZERO { T::ZERO } else { beta * direction.as_slice()[i] };
            let step = before + alpha * (inverse_diagonal.as_slice()[i] * residual);
            direction.as_mut_slice()[i] = step;
            next.as_mut_slice()[i] = x.as_slice()[i] + step;
        }
        Ok(())
    }

    fn relax_residual(
        &self,
        r: &mut Buffer<T, Self>,
        product: &mut Buffer<T, Self>,
        a: &dyn LinearOperator<T, Self>,
        x: &Buffer<T, Self>,
        b: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        a.apply(product, x)?;
        for i in 0..b.len() {
            r.as_mut_slice()[i] = b.as_slice()[i] - product.as_slice()[i];
        }
        Ok(())
    }
}
