//! The acts of polynomial smoothers on the CPU: in the passes of products, block by block.

use std::ops::Range;

use femtile_device::cpu::SharedMut;
use femtile_device::{Buffer, Cpu, Scalar};

use super::{PolynomialKernels, Relaxed, Step};
use crate::hooks::{Claims, Hook};
use crate::vector::sum::BLOCK;
use crate::{LinalgError, LinearOperator, error::need};

/// Entries that one thread takes at least.
const MIN_LEN: usize = 4 * BLOCK;

/// r = b − y for rows whose product y has just been computed.
struct Residual<'a, T> {
    b: &'a [T],
    r: SharedMut<'a, T>,
    claims: Claims,
}

impl<T: Scalar> Hook<T> for Residual<'_, T> {
    fn post(&self, rows: Range<usize>, _: &[T], y: &[T]) {
        self.claims.claim(&rows);
        // SAFETY: these rows are claimed once.
        let r = unsafe { self.r.range(rows.clone()) };
        r.iter_mut().zip(&self.b[rows]).zip(y).for_each(|((r, &b), &y)| *r = b - y);
    }
}

/// A step of a smoother for rows whose product has just been computed.
struct Relax<'a, T> {
    step: Step<T>,
    b: &'a [T],
    inverse_diagonal: &'a [T],
    next: SharedMut<'a, T>,
    direction: SharedMut<'a, T>,
    claims: Claims,
}

impl<T: Scalar> Hook<T> for Relax<'_, T> {
    fn post(&self, rows: Range<usize>, x: &[T], y: &[T]) {
        let Step { alpha, beta, is_kept } = self.step;
        self.claims.claim(&rows);
        let (b, inverse) = (&self.b[rows.clone()], &self.inverse_diagonal[rows.clone()]);
        // SAFETY: these rows are claimed once.
        let next = unsafe { self.next.range(rows.clone()) };
        let n = next.len();
        let (x, y, b, inverse) = (&x[..n], &y[..n], &b[..n], &inverse[..n]);
        if !is_kept && beta == T::ZERO {
            for i in 0..n {
                next[i] = x[i] + alpha * (inverse[i] * (b[i] - y[i]));
            }
            return;
        }
        // SAFETY: these rows are claimed once.
        let direction = unsafe { self.direction.range(rows) };
        if beta == T::ZERO {
            direction.fill(T::ZERO);
        }
        for i in 0..n {
            direction[i] = beta * direction[i] + alpha * (inverse[i] * (b[i] - y[i]));
            next[i] = x[i] + direction[i];
        }
    }
}

impl<T: Scalar> PolynomialKernels<T> for Cpu {
    fn relax_from_zero(
        &self,
        x: &mut Buffer<T, Self>,
        direction: &mut Buffer<T, Self>,
        step: Step<T>,
        inverse_diagonal: &Buffer<T, Self>,
        b: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        super::need_vectors(
            b,
            [("x", &*x), ("direction", &*direction), ("inverse_diagonal", inverse_diagonal)],
        )?;
        let (inverse, b) = (inverse_diagonal.as_slice(), b.as_slice());
        let (x, direction) = (SharedMut::new(x.as_mut_slice()), SharedMut::new(direction.as_mut_slice()));
        self.for_ranges(b.len(), MIN_LEN, |rows| {
            // SAFETY: ranges of one call do not overlap.
            let (x, direction) = unsafe { (x.range(rows.clone()), direction.range(rows.clone())) };
            let given = inverse[rows.clone()].iter().zip(&b[rows]);
            x.iter_mut().zip(given).for_each(|(x, (&inverse, &b))| *x = step.alpha * (inverse * b));
            if step.is_kept {
                direction.copy_from_slice(x);
            }
        });
        Ok(())
    }

    fn relax(
        &self,
        a: &dyn LinearOperator<T, Self>,
        step: Step<T>,
        vectors: Relaxed<'_, T, Self>,
    ) -> Result<(), LinalgError> {
        super::need_relaxed(&vectors)?;
        let Relaxed { b, inverse_diagonal, x, next, direction, product } = vectors;
        let hook = Relax {
            claims: Claims::new(b.len()),
            step,
            b: b.as_slice(),
            inverse_diagonal: inverse_diagonal.as_slice(),
            next: SharedMut::new(next.as_mut_slice()),
            direction: SharedMut::new(direction.as_mut_slice()),
        };
        a.apply_with(product, x, &hook)
    }

    fn relax_residual(
        &self,
        r: &mut Buffer<T, Self>,
        product: &mut Buffer<T, Self>,
        a: &dyn LinearOperator<T, Self>,
        x: &Buffer<T, Self>,
        b: &Buffer<T, Self>,
    ) -> Result<(), LinalgError> {
        need("b", r.len(), b.len())?;
        let claims = Claims::new(b.len());
        let hook = Residual { b: b.as_slice(), r: SharedMut::new(r.as_mut_slice()), claims };
        a.apply_with(product, x, &hook)
    }
}
