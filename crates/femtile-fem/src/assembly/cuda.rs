use femtile_device::{Cpu, Cuda, Scalar};

use super::kernels::{Assembled, AssemblyKernels, Problem};
use crate::FemError;

impl<T: Scalar> AssemblyKernels<T> for Cuda {
    fn assemble_system(&self, problem: &Problem<'_>) -> Result<Assembled<T, Self>, FemError> {
        let host: Assembled<T, Cpu> = Cpu::new(0)?.assemble_system(problem)?;
        let matrix = host.matrix.copy_to(self)?;
        Ok(Assembled { matrix, rhs: host.rhs, reacts: host.reacts })
    }
}
