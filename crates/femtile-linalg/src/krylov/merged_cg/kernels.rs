use femtile_device::{Buffer, Scalar};

use super::MergedScalars;
use crate::krylov::cg::CgKernels;
use crate::krylov::residual::residual;
use crate::{LinalgError, LinearOperator};

/// The vectors of a solve by merged conjugate gradients besides x and b.
#[derive(Debug)]
pub struct MergedVectors<T: Scalar, D: CgKernels<T>> {
    /// The residual.
    pub r: Buffer<T, D>,
    /// The direction.
    pub p: Buffer<T, D>,
    /// $A p$.
    pub v: Buffer<T, D>,
}

impl<T: Scalar, D: CgKernels<T>> MergedVectors<T, D> {
    /// r = b − A x and zeros.
    pub(super) fn new(
        x: &Buffer<T, D>,
        a: &dyn LinearOperator<T, D>,
        b: &Buffer<T, D>,
    ) -> Result<Self, LinalgError> {
        let (n, device) = (b.len(), b.device());
        let mut r = Buffer::zeros(device, n)?;
        residual(&mut r, a, x, b)?;
        Ok(Self { r, p: Buffer::zeros(device, n)?, v: Buffer::zeros(device, n)? })
    }
}

/// The passes of merged conjugate gradients; nothing in them waits for the host.
///
/// `diagonal` has entries of $D^{-1}$ and for how many consecutive rows each of them stands.
///
/// # Errors
/// [`LinalgError::Length`] when vectors of one call differ in length.
pub trait MergedCgKernels<T: Scalar>: CgKernels<T> {
    /// Updates x, r and p as the last step decided, computes $v = A p$ and the seven sums; does nothing once
    /// the method has ended.
    fn merged_cg_pass(
        &self,
        x: &mut Buffer<T, Self>,
        vectors: &mut MergedVectors<T, Self>,
        a: &dyn LinearOperator<T, Self>,
        diagonal: (&Buffer<T, Self>, usize),
        scalars: &mut MergedScalars<Self>,
    ) -> Result<(), LinalgError>;

    /// Computes $\alpha$, $\beta$ and the coefficients of the update of x from the sums; ends the method on convergence or breakdown.
    fn merged_cg_step(&self, scalars: &mut MergedScalars<Self>) -> Result<(), LinalgError>;

    /// Adds to x the steps that it has not taken.
    fn merged_cg_finish(
        &self,
        x: &mut Buffer<T, Self>,
        vectors: &MergedVectors<T, Self>,
        diagonal: (&Buffer<T, Self>, usize),
        scalars: &MergedScalars<Self>,
    ) -> Result<(), LinalgError>;
}
