use femtile_device::{Buffer, Reference, Scalar};

use super::{SStepCgKernels, SStepSums, SmallMatrix};
use crate::LinalgError;
use crate::vector::VectorKernels;

type Vector<T> = Buffer<T, Reference>;

impl<T: Scalar> SStepCgKernels<T> for Reference {
    fn s_step_couplings(
        &self,
        p: &[Vector<T>],
        t: &[Vector<T>],
        inverse_diagonal: Option<&Vector<T>>,
    ) -> Result<SmallMatrix, LinalgError> {
        let mut couplings = SmallMatrix::default();
        for (j, t) in t[1..].iter().enumerate() {
            let a_t = unscaled(self, t, inverse_diagonal)?;
            for (i, p) in p.iter().enumerate() {
                couplings[(i, j)] = self.dot(p, &a_t)?;
            }
        }
        Ok(couplings)
    }

    fn s_step_directions(
        &self,
        p: &mut [Vector<T>],
        t: &[Vector<T>],
        b: &SmallMatrix,
        n_before: usize,
        inverse_diagonal: Option<&Vector<T>>,
    ) -> Result<SStepSums, LinalgError> {
        let before: Vec<Vec<T>> = p[..n_before].iter().map(|p| p.as_slice().to_vec()).collect();
        let n_steps = t.len() - 1;
        let mut sums = SStepSums::default();
        for j in 0..n_steps {
            self.copy(&mut p[j], &t[j])?;
            for (l, before) in before.iter().enumerate() {
                let before = Buffer::from_host(self, before)?;
                self.axpby(&mut p[j], T::from_f64(b[(l, j)]), &before, T::ONE)?;
            }
        }
        let r = unscaled(self, &t[0], inverse_diagonal)?;
        for j in 0..n_steps {
            let a_t = unscaled(self, &t[j + 1], inverse_diagonal)?;
            for (i, p) in p[..n_steps].iter().enumerate() {
                sums.w[(i, j)] = self.dot(p, &a_t)?;
            }
            sums.g[j] = self.dot(&p[j], &r)?;
        }
        Ok(sums)
    }

    fn s_step_solution(&self, x: &mut Vector<T>, p: &[Vector<T>], a: &[f64]) -> Result<(), LinalgError> {
        for (p, &a) in p.iter().zip(a) {
            self.axpby(x, T::from_f64(a), p, T::ONE)?;
        }
        Ok(())
    }

    fn s_step_residual(
        &self,
        t_0: &mut Vector<T>,
        b: &Vector<T>,
        v: &Vector<T>,
        inverse_diagonal: Option<&Vector<T>>,
    ) -> Result<f64, LinalgError> {
        self.copy(t_0, v)?;
        self.axpby(t_0, T::ONE, b, -T::ONE)?;
        let r_dot_r = self.dot(t_0, t_0)?;
        if let Some(d) = inverse_diagonal {
            let r = Buffer::from_host(self, t_0.as_slice())?;
            self.scale_by(t_0, d, &r)?;
        }
        Ok(r_dot_r)
    }
}

/// D t.
fn unscaled<T: Scalar>(
    device: &Reference,
    t: &Vector<T>,
    inverse_diagonal: Option<&Vector<T>>,
) -> Result<Vector<T>, LinalgError> {
    let mut values = t.as_slice().to_vec();
    if let Some(d) = inverse_diagonal {
        values.iter_mut().zip(d.as_slice()).for_each(|(t, &d)| *t /= d);
    }
    Ok(Buffer::from_host(device, &values)?)
}
