//! Right sides whose squares leave the range of numbers.
//!
//! Such right sides are scaled by a power of two.

use femtile_device::{Buffer, Scalar};

use super::cg::CgOutcome;
use super::residual::norm;
use crate::LinalgError;
use crate::comm::Communicator;
use crate::vector::VectorKernels;

/// A right side and a start scaled by $2^e$, so that $\|b\|_2$ is near 1. If it is neither very small nor
/// very large, $e = 0$ and nothing is copied.
pub(super) struct Rescaled<T: Scalar, D: VectorKernels<T>> {
    /// $\|b\|_2$ after scaling.
    pub b_norm: f64,
    exponent: i32,
    b: Option<Buffer<T, D>>,
}

/// Binary exponents of ‖b‖ that need no scaling, and the largest exponent of one scaling.
const fn limits<T: Scalar>() -> (f64, i32) {
    if size_of::<T>() == 8 { (100.0, 500) } else { (20.0, 60) }
}

/// Returns the binary exponent of $\|b\|$, of either sign, up to which nothing is scaled.
pub(super) fn usual_exponent<T: Scalar>() -> f64 {
    limits::<T>().0
}

impl<T: Scalar, D: VectorKernels<T>> Rescaled<T, D> {
    /// Scales if necessary. Returns none, and sets x to zero, if b is zero.
    pub(super) fn new<C: Communicator>(
        x: &mut Buffer<T, D>,
        b: &Buffer<T, D>,
        comm: &C,
    ) -> Result<Option<Self>, LinalgError> {
        let (usual, step) = limits::<T>();
        let b_norm = norm(b, comm)?;
        if b_norm.is_nan() || (b_norm > 0.0 && b_norm.log2().abs() <= usual) {
            return Ok(Some(Self { b_norm, exponent: 0, b: None }));
        }
        let mut scaled = Buffer::zeros(b.device(), b.len())?;
        for first in [0, step, 2 * step, -step, -2 * step] {
            b.device().copy(&mut scaled, b)?;
            scale(&mut scaled, first)?;
            let length = norm(&scaled, comm)?;
            if !(length > 0.0 && length.is_finite() && length.log2().abs() < f64::from(step)) {
                continue;
            }
            let second = -(length.log2().round() as i32);
            scale(&mut scaled, second)?;
            let exponent = first + second;
            scale(x, exponent)?;
            return Ok(Some(Self { b_norm: norm(&scaled, comm)?, exponent, b: Some(scaled) }));
        }
        if b_norm > 0.0 {
            return Ok(Some(Self { b_norm, exponent: 0, b: None }));
        }
        b.device().fill(x, T::ZERO)?;
        Ok(None)
    }

    /// The right side to solve with; `b` is the original one.
    pub(super) fn b<'a>(&'a self, b: &'a Buffer<T, D>) -> &'a Buffer<T, D> {
        self.b.as_ref().unwrap_or(b)
    }

    /// Scales the solution and the numbers of the outcome back.
    pub(super) fn restore(&self, x: &mut Buffer<T, D>, outcome: &mut CgOutcome) -> Result<(), LinalgError> {
        scale(x, -self.exponent)?;
        let factor = |value: f64| {
            value * 2f64.powi(-self.exponent / 2) * 2f64.powi(-self.exponent + self.exponent / 2)
        };
        outcome.energy_error = outcome.energy_error.map(factor);
        outcome.energy_norm = factor(outcome.energy_norm);
        Ok(())
    }
}

/// $x \leftarrow 2^e x$, in steps that numbers can hold.
fn scale<T: Scalar, D: VectorKernels<T>>(x: &mut Buffer<T, D>, exponent: i32) -> Result<(), LinalgError> {
    let (_, step) = limits::<T>();
    let (device, mut left) = (x.device().clone(), exponent);
    let none = Buffer::zeros(&device, if exponent == 0 { 0 } else { x.len() })?;
    while left != 0 {
        let part = left.clamp(-step, step);
        device.axpby(x, T::ZERO, &none, T::from_f64(2f64.powi(part)))?;
        left -= part;
    }
    Ok(())
}
