use femtile_device::{Buffer, Device, DeviceError, Scalar};

use crate::LinalgError;
use crate::krylov::Preconditioning;
use crate::vector::VectorKernels;

/// The vectors of a pipelined solve besides x and b.
pub struct PipelinedCgVectors<T: Scalar, D: Device> {
    /// $r = b - A x$, by its recurrence.
    pub r: Buffer<T, D>,
    /// $w = A u$, by its recurrence.
    pub w: Buffer<T, D>,
    /// $n = A m$ with $m = M^{-1} w$.
    pub n: Buffer<T, D>,
    /// The direction of $x$.
    pub p: Buffer<T, D>,
    /// $s = A p$, the direction of $r$.
    pub s: Buffer<T, D>,
    /// $z = A q$, the direction of $w$.
    pub z: Buffer<T, D>,
    /// $m = M^{-1} w$; empty if $M = I$.
    pub m: Buffer<T, D>,
    /// $u = M^{-1} r$, by its recurrence; empty if $M$ is diagonal.
    pub u: Buffer<T, D>,
    /// $q = M^{-1} s$, the direction of $u$; empty if $M$ is diagonal.
    pub q: Buffer<T, D>,
}

impl<T: Scalar, D: Device> PipelinedCgVectors<T, D> {
    /// Returns vectors of zeros, those that the preconditioner needs.
    pub(super) fn zeros(device: &D, n: usize, by: Preconditioning<'_, T, D>) -> Result<Self, DeviceError> {
        let (n_m, n_u) = match by {
            Preconditioning::Identity => (0, 0),
            Preconditioning::Diagonal(_) => (n, 0),
            Preconditioning::General => (n, n),
        };
        let zeros = |n| Buffer::zeros(device, n);
        Ok(Self {
            r: zeros(n)?,
            w: zeros(n)?,
            n: zeros(n)?,
            p: zeros(n)?,
            s: zeros(n)?,
            z: zeros(n)?,
            m: zeros(n_m)?,
            u: zeros(n_u)?,
            q: zeros(n_u)?,
        })
    }
}

/// The two scalars of an iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PipelinedCgStep {
    /// The length of the step along $p$.
    pub alpha: f64,
    /// Coefficients kept from the directions before.
    pub beta: f64,
}

/// The sums of an iteration, all computed in one pass.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PipelinedCgSums {
    /// $r^\mathsf{T} r$.
    pub r_dot_r: f64,
    /// $r^\mathsf{T} u$.
    pub r_dot_u: f64,
    /// $w^\mathsf{T} u$.
    pub w_dot_u: f64,
}

/// The one pass of pipelined conjugate gradients.
pub trait PipelinedCgKernels<T: Scalar>: VectorKernels<T> {
    /// Advances all vectors by one step, and computes the sums of the next step.
    ///
    /// $$ p = u + \beta p, \quad s = w + \beta s, \quad q = m + \beta q, \quad z = n + \beta z, $$
    /// $$ x \mathrel{+}= \alpha p, \quad r \mathrel{-}= \alpha s, \quad u \mathrel{-}= \alpha q, \quad w \mathrel{-}= \alpha z $$
    ///
    /// If $M^{-1} = D^{-1}$, $u = D^{-1} r$ is computed from r and $m = D^{-1} w$ of the next step is
    /// written; q is not needed. For any other $M$, m is left to the caller.
    ///
    /// # Cost
    /// Values read and written for each unknown: 7 and 6 without a preconditioner, 8 and 7 with a diagonal, 10 and 8
    /// with any other.
    /// # Errors
    /// [`LinalgError::Length`] when vectors differ in length.
    fn pipelined_cg_update(
        &self,
        x: &mut Buffer<T, Self>,
        v: &mut PipelinedCgVectors<T, Self>,
        by: Preconditioning<'_, T, Self>,
        step: PipelinedCgStep,
    ) -> Result<PipelinedCgSums, LinalgError>;
}
