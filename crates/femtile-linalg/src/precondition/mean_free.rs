use std::fmt;
use std::sync::{Mutex, PoisonError};

use femtile_device::{Buffer, Scalar};

use crate::vector::{DeviceSum, VectorKernels};
use crate::{LinalgError, Preconditioner};

/// A preconditioner for singular systems whose null space is the constants, $z = (I - \frac{1}{n} 1 1^\mathsf{T}) M^{-1} r$.
///
/// Rounding leaves a small constant in the residual. A preconditioner that nearly inverts A enlarges it
/// without bound, so that directions grow along the null space until rounding hides the rest.
///
/// # Cost
/// That of M, and two passes over z.
pub struct MeanFree<T: Scalar, D: VectorKernels<T>> {
    of: Box<dyn Preconditioner<T, D>>,
    sum: Mutex<DeviceSum<D>>,
}

impl<T: Scalar, D: VectorKernels<T>> fmt::Debug for MeanFree<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeanFree").finish_non_exhaustive()
    }
}

impl<T: Scalar, D: VectorKernels<T>> MeanFree<T, D> {
    /// With the preconditioner of vectors of `n` entries.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(device: &D, n: usize, of: Box<dyn Preconditioner<T, D>>) -> Result<Self, LinalgError> {
        Ok(Self { of, sum: Mutex::new(DeviceSum::new(device, n)?) })
    }
}

impl<T: Scalar, D: VectorKernels<T>> Preconditioner<T, D> for MeanFree<T, D> {
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        self.of.apply(z, r)?;
        let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
        z.device().clone().subtract_mean(z, &mut sum)
    }

    fn is_fixed(&self) -> bool {
        self.of.is_fixed()
    }

    fn set_residual_norm(&self, norm: f64) {
        self.of.set_residual_norm(norm);
    }
}
