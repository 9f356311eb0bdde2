//! The acts of a cycle by plain loops: the oracle.

use femtile_device::{Buffer, Reference, Scalar};
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, LinearOperator};

use crate::kernels::{AmgKernels, Convert, Smoothed, Step};

impl<H: Scalar> AmgKernels<H> for Reference {
    fn amg_first_step(
        &self,
        x: &mut Buffer<H, Self>,
        direction: &mut Buffer<H, Self>,
        step: Step<H>,
        inverse_diagonal: &Buffer<H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        for i in 0..b.len() {
            x.as_mut_slice()[i] = step.alpha * (inverse_diagonal.as_slice()[i] * b.as_slice()[i]);
        }
        if step.is_kept {
            direction.as_mut_slice().copy_from_slice(x.as_slice());
        }
        Ok(())
    }

    fn amg_step(
        &self,
        a: &dyn LinearOperator<H, Self>,
        Step { alpha, beta, .. }: Step<H>,
        vectors: Smoothed<'_, H, Self>,
    ) -> Result<(), LinalgError> {
        let Smoothed { b, inverse_diagonal, x, next, direction, product } = vectors;
        a.apply(product, x)?;
        for i in 0..b.len() {
            let residual = b.as_slice()[i] - product.as_slice()[i];
            let before = if beta == H::ZERO { H::ZERO } else { beta * direction.as_slice()[i] };
            let step = before + alpha * (inverse_diagonal.as_slice()[i] * residual);
            direction.as_mut_slice()[i] = step;
            next.as_mut_slice()[i] = x.as_slice()[i] + step;
        }
        Ok(())
    }

    fn amg_dot(&self, x: &Buffer<H, Self>, y: &Buffer<H, Self>) -> Result<f64, LinalgError> {
        self.dot(x, y)
    }

    fn amg_residual(
        &self,
        r: &mut Buffer<H, Self>,
        product: &mut Buffer<H, Self>,
        a: &dyn LinearOperator<H, Self>,
        x: &Buffer<H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        a.apply(product, x)?;
        for i in 0..b.len() {
            r.as_mut_slice()[i] = b.as_slice()[i] - product.as_slice()[i];
        }
        Ok(())
    }
}

impl<T: Scalar, H: Scalar> Convert<T, H> for Reference {
    fn amg_convert(
        &self,
        y: &mut Buffer<H, Self>,
        alpha: f64,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        let pairs = y.as_mut_slice().iter_mut().zip(x.as_slice());
        pairs.for_each(|(y, x)| *y = H::from_f64(alpha * x.to_f64()));
        Ok(())
    }

    fn amg_gather(
        &self,
        y: &mut Buffer<H, Self>,
        alpha: f64,
        x: &Buffer<T, Self>,
        order: &Buffer<u32, Self>,
    ) -> Result<(), LinalgError> {
        let pairs = y.as_mut_slice().iter_mut().zip(order.as_slice());
        pairs.for_each(|(y, &at)| *y = H::from_f64(alpha * x.as_slice()[at as usize].to_f64()));
        Ok(())
    }
}
