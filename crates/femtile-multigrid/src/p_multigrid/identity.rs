use femtile_device::Buffer;
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, Transfer};

/// The identity transfer, between two smoothers of the same unknowns.
#[derive(Debug, Clone, Copy)]
pub struct IdentityTransfer(
    /// The number of unknowns.
    pub usize,
);

impl<T: femtile_device::Scalar, D: VectorKernels<T>> Transfer<T, D> for IdentityTransfer {
    fn n_fine(&self) -> usize {
        self.0
    }

    fn n_coarse(&self) -> usize {
        self.0
    }

    fn prolongate(&self, x: &mut Buffer<T, D>, e: &Buffer<T, D>) -> Result<(), LinalgError> {
        let device = e.device().clone();
        device.axpby(x, T::ONE, e, T::ONE)
    }

    fn restrict(&self, b: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        r.device().clone().copy(b, r)
    }
}
