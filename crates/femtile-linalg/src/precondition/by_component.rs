use std::fmt;
use std::sync::{Mutex, PoisonError};

use femtile_device::{Buffer, Scalar};

use crate::error::need;
use crate::vector::VectorKernels;
use crate::{LinalgError, Preconditioner};

/// One preconditioner applied to each component of a vector field separately, $z_c = M^{-1} r_c$. The values
/// of all components at a node are consecutive.
///
/// # Cost
/// One application of the inner preconditioner for each component, and two passes over the
/// vectors; memory for two vectors of one component.
pub struct ByComponent<T: Scalar, D: VectorKernels<T>> {
    one: Box<dyn Preconditioner<T, D>>,
    n: usize,
    /// Residual and correction of a component.
    workspace: Mutex<[Buffer<T, D>; 2]>,
}

impl<T: Scalar, D: VectorKernels<T>> fmt::Debug for ByComponent<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByComponent").field("n", &self.n).finish_non_exhaustive()
    }
}

impl<T: Scalar, D: VectorKernels<T>> ByComponent<T, D> {
    /// Creates the preconditioner for `n` components of `n_entries` entries each.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(
        device: &D,
        one: Box<dyn Preconditioner<T, D>>,
        (n_entries, n): (usize, usize),
    ) -> Result<Self, LinalgError> {
        let workspace = [Buffer::zeros(device, n_entries)?, Buffer::zeros(device, n_entries)?];
        Ok(Self { one, n, workspace: Mutex::new(workspace) })
    }
}

impl<T: Scalar, D: VectorKernels<T>> Preconditioner<T, D> for ByComponent<T, D> {
    fn apply(&self, z: &mut Buffer<T, D>, r: &Buffer<T, D>) -> Result<(), LinalgError> {
        let mut workspace = self.workspace.lock().unwrap_or_else(PoisonError::into_inner);
        let [own_r, own_z] = &mut *workspace;
        let (device, n) = (z.device().clone(), self.n);
        need("z", own_r.len() * n, z.len())?;
        need("r", own_r.len() * n, r.len())?;
        for component in 0..n {
            device.take_component(own_r, r, (component, n))?;
            self.one.apply(own_z, own_r)?;
            device.put_component(z, own_z, (component, n))?;
        }
        Ok(())
    }

    fn is_fixed(&self) -> bool {
        self.one.is_fixed()
    }

    fn set_residual_norm(&self, norm: f64) {
        self.one.set_residual_norm(norm);
    }
}

#[cfg(test)]
mod tests {
    use femtile_device::Cpu;

    use super::*;
    use crate::precondition::Diagonal;

    #[test]
    fn each_component_takes_the_same() {
        let cpu = Cpu::new(2).unwrap();
        for (n_entries, n) in [(0, 3), (1, 2), (5, 1), (20_011, 3)] {
            let entries: Vec<f64> = (0..n_entries).map(|i| 1.0 + i as f64).collect();
            let one = || Box::new(Diagonal::of_entries(&cpu, entries.clone()).unwrap());
            let m = ByComponent::new(&cpu, one(), (n_entries, n)).unwrap();
            let r: Vec<f64> = (0..n_entries * n).map(|i| (i as f64).sin()).collect();
            let r = Buffer::from_vec(&cpu, r).unwrap();
            let mut z = Buffer::from_vec(&cpu, vec![f64::NAN; r.len()]).unwrap();
            m.apply(&mut z, &r).unwrap();
            for (i, (z, r)) in z.as_slice().iter().zip(r.as_slice()).enumerate() {
                assert_eq!(*z, r * (1.0 / (1.0 + (i / n) as f64)));
            }
            let mut short = Buffer::zeros(&cpu, n_entries * n + 1).unwrap();
            assert!(matches!(m.apply(&mut short, &r), Err(LinalgError::Length { field: "z", .. })));
        }
    }
}
