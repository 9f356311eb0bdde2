use femtile_device::{Buffer, Device, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::precondition::polynomial::{Iterate, PolynomialKernels};

use super::damping::outer_damping;
use super::{PatchFormat, PatchKernels, PatchMatrix, Patches};
use crate::setup::rows::Rows;
use crate::setup::spectrum::{DAMPING, Scaling};

/// The patch smoother, additive Schwarz without overlap. A step is $x = x + \omega M^{-1} (b - A x)$.
/// $M^{-1}$ is `inner` damped Jacobi iterations from zero on each block $A_{kk}$, $g = g + S (r - A_{kk} g)$.
///
/// # Source
/// `[fu2014]`, section 5.2.2, Algorithm 5.3.
#[derive(Debug)]
pub struct PatchSmoother<H: Scalar, D: Device> {
    /// The matrix.
    pub matrix: PatchMatrix<H, D>,
    /// S: the reciprocals of the diagonal, times the damping of the inner iterations.
    pub scale: Buffer<H, D>,
    /// Inner iterations, at least one.
    pub inner: usize,
    /// The outer damping.
    pub omega: H,
}

impl<H: Scalar, D: Device> PatchSmoother<H, D> {
    /// Sets up the smoother of a matrix whose rows are in the order of the patches.
    pub(crate) fn new(
        device: &D,
        (inner, format): (usize, PatchFormat),
        (a, diagonal): (&Rows<H>, &[H]),
        patches: Option<&Patches>,
        Scaling { inverse_diagonal, largest, .. }: Scaling<H>,
    ) -> Result<Self, LinalgError> {
        let starts = patches.map_or(&[0][..], |patches| &patches.starts);
        let damping = H::from_f64(DAMPING / largest);
        let scale: Vec<H> = inverse_diagonal.into_iter().map(|inverse| damping * inverse).collect();
        let omega = H::from_f64(outer_damping(a, &scale, starts, inner));
        let matrix = PatchMatrix::new(device, a, diagonal.to_vec(), starts, format)?;
        Ok(Self { matrix, scale: Buffer::from_vec(device, scale)?, inner, omega })
    }
}

impl<H: Scalar, D: PatchKernels<H> + PolynomialKernels<H>> PatchSmoother<H, D> {
    /// Takes a step from zero; `next` becomes the part of its residual within patches.
    pub(crate) fn smooth_from_zero(&self, device: &D, own: &mut Iterate<H, D>) -> Result<(), LinalgError> {
        device.patch_relax_from_zero(&mut own.x, &mut own.next, self, &own.b)
    }

    /// Completes the residual in `next`, directly after [`PatchSmoother::smooth_from_zero`].
    pub(crate) fn first_residual(&self, device: &D, own: &mut Iterate<H, D>) -> Result<(), LinalgError> {
        device.patch_subtract_outside(&mut own.next, &self.matrix, &own.x)
    }

    /// Takes a step; `b` is undefined afterwards.
    pub(crate) fn smooth(&self, device: &D, own: &mut Iterate<H, D>) -> Result<(), LinalgError> {
        device.patch_subtract_outside(&mut own.b, &self.matrix, &own.x)?;
        device.patch_relax(&mut own.x, self, &own.b)
    }
}
