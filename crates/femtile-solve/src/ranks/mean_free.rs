//! Multigrid for singular systems whose kernel is the constants.

use femtile_comm::Comm;
use femtile_device::Buffer;
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, Preconditioner};

/// $z = (I - \frac{1}{n} 1 1^\mathsf{T}) M^{-1} r$ over all ranks, the distributed form of
/// [`femtile_linalg::precondition::MeanFree`].
pub(super) struct MeanFree<D: VectorKernels<f64>> {
    of: Box<dyn Preconditioner<f64, D>>,
    comm: Comm,
    /// Global number of unknowns.
    n: usize,
    ones: Buffer<f64, D>,
}

impl<D: VectorKernels<f64>> MeanFree<D> {
    /// Wraps a preconditioner of `n` unknowns in all, `n_owned` of them on this rank.
    pub fn new(
        device: &D,
        of: Box<dyn Preconditioner<f64, D>>,
        comm: Comm,
        [n, n_owned]: [usize; 2],
    ) -> Result<Self, LinalgError> {
        let mut ones = Buffer::zeros(device, n_owned)?;
        device.fill(&mut ones, 1.0)?;
        Ok(Self { of, comm, n, ones })
    }
}

impl<D: VectorKernels<f64>> Preconditioner<f64, D> for MeanFree<D> {
    fn apply(&self, z: &mut Buffer<f64, D>, r: &Buffer<f64, D>) -> Result<(), LinalgError> {
        self.of.apply(z, r)?;
        let device = r.device();
        let mut sum = [VectorKernels::sum(device, z)?];
        self.comm.sum_values(&mut sum)?;
        device.axpby(z, -sum[0] / self.n as f64, &self.ones, 1.0)
    }

    fn is_fixed(&self) -> bool {
        self.of.is_fixed()
    }

    fn set_residual_norm(&self, norm: f64) {
        self.of.set_residual_norm(norm);
    }
}
