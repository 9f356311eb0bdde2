use std::fmt;
use std::sync::{Mutex, PoisonError};

use femtile_device::{Buffer, Scalar};

use crate::comm::{Communicator, SingleRank};
use crate::vector::{DeviceSum, VectorKernels};
use crate::{LinalgError, Preconditioner};

/// A preconditioner for singular systems whose null space is the constants, $z = (I - \frac{1}{n} 1 1^\mathsf{T}) M^{-1} r$,
/// with the n unknowns of all ranks. Its application is collective.
///
/// Rounding leaves a small constant in the residual. A preconditioner that nearly inverts A enlarges it
/// without bound, so that directions grow along the null space until rounding hides the rest.
///
/// # Cost
/// That of M, two passes over z, and a sum over ranks.
pub struct MeanFree<T: Scalar, D: VectorKernels<T>, C: Communicator = SingleRank> {
    of: Box<dyn Preconditioner<T, D>>,
    comm: C,
    n: usize,
    sum: Mutex<DeviceSum<D>>,
}

impl<T: Scalar, D: VectorKernels<T>, C: Communicator> fmt::Debug for MeanFree<T, D, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeanFree").field("n", &self.n).finish_non_exhaustive()
    }
}

impl<T: Scalar, D: VectorKernels<T>, C: Communicator> MeanFree<T, D, C> {
    /// With the preconditioner of the `n_owned` unknowns of a rank, of `n` on all of them.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(
        device: &D,
        of: Box<dyn Preconditioner<T, D>>,
        comm: C,
        n_owned: usize,
        n: usize,
    ) -> Result<Self, LinalgError> {
        Ok(Self { of, comm, n, sum: Mutex::new(DeviceSum::new(device, n_owned)?) })
    }
}

impl<T: Scalar, D: VectorKernels<T>, C: Communicator + Send> Preconditioner<T, D> for MeanFree<T, D, C> {
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        self.of.apply(z, r)?;
        let mut sum = self.sum.lock().unwrap_or_else(PoisonError::into_inner);
        let device = z.device().clone();
        device.sum_into(&mut sum, z)?;
        self.comm.sum(sum.value_mut())?;
        device.subtract_mean(z, &sum, self.n)
    }

    fn is_fixed(&self) -> bool {
        self.of.is_fixed()
    }

    fn set_residual_norm(&self, norm: f64) {
        self.of.set_residual_norm(norm);
    }
}

#[cfg(test)]
mod tests {
    use femtile_device::{Cpu, Device};

    use super::*;
    use crate::precondition::Diagonal;

    /// A rank beside others whose entries have the sum 10.
    struct Beside;

    impl Communicator for Beside {
        fn rank(&self) -> usize {
            0
        }

        fn n_ranks(&self) -> usize {
            2
        }

        fn sum<D: Device>(&self, values: &mut Buffer<f64, D>) -> Result<(), LinalgError> {
            let sums: Vec<f64> = values.to_host()?.into_iter().map(|value| value + 10.0).collect();
            Ok(values.upload(&sums)?)
        }
    }

    #[test]
    fn the_mean_is_that_of_the_unknowns_of_all_ranks() {
        let cpu = Cpu::new(1).unwrap();
        let r = Buffer::from_vec(&cpu, vec![1.0, 2.0, 3.0]).unwrap();
        let mut z = Buffer::from_vec(&cpu, vec![f64::NAN; 3]).unwrap();
        let identity = || Box::new(Diagonal::identity(&cpu, 3).unwrap());
        MeanFree::new(&cpu, identity(), SingleRank, 3, 3).unwrap().apply(&mut z, &r).unwrap();
        assert_eq!(z.as_slice(), [-1.0, 0.0, 1.0]);
        MeanFree::new(&cpu, identity(), Beside, 3, 8).unwrap().apply(&mut z, &r).unwrap();
        assert_eq!(z.as_slice(), [-1.0, 0.0, 1.0]);
        MeanFree::new(&cpu, identity(), Beside, 3, 4).unwrap().apply(&mut z, &r).unwrap();
        assert_eq!(z.as_slice(), [-3.0, -2.0, -1.0]);
    }
}
