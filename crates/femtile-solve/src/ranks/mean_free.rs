//! Multigrid for systems that leave a constant open.

use femtile_comm::Comm;
use femtile_device::{Buffer, Cpu};
use femtile_linalg::{LinalgError, Preconditioner};

/// $z = (I - \frac{1}{n} 1 1^\mathsf{T}) M^{-1} r$ over all ranks, as [`femtile_linalg::precondition::MeanFree`] is for one.
pub(super) struct MeanFree {
    pub of: Box<dyn Preconditioner<f64, Cpu>>,
    pub comm: Comm,
    /// Unknowns of all ranks.
    pub n: usize,
}

impl Preconditioner<f64, Cpu> for MeanFree {
    fn apply(&self, z: &mut Buffer<f64, Cpu>, r: &Buffer<f64, Cpu>) -> Result<(), LinalgError> {
        self.of.apply(z, r)?;
        let mut sum = [z.as_slice().iter().sum::<f64>()];
        self.comm.sum_values(&mut sum)?;
        let mean = sum[0] / self.n as f64;
        z.as_mut_slice().iter_mut().for_each(|z| *z -= mean);
        Ok(())
    }

    fn is_fixed(&self) -> bool {
        self.of.is_fixed()
    }

    fn set_residual_norm(&self, norm: f64) {
        self.of.set_residual_norm(norm);
    }
}
