use femtile_device::{Buffer, Reference, Scalar};

use super::kernels::enough;
use super::{SStepCgKernels, SStepGram, SmallMatrix};
use crate::LinalgError;
use crate::vector::VectorKernels;

type Vector<T> = Buffer<T, Reference>;

impl<T: Scalar> SStepCgKernels<T> for Reference {
    fn s_step_gram(
        &self,
        p: &[Vector<T>],
        t: &[Vector<T>],
        inverse_diagonal: Option<&Vector<T>>,
    ) -> Result<SStepGram, LinalgError> {
        let mut gram = SStepGram::default();
        for (k, t_k) in t.iter().enumerate() {
            let d_t = unscaled(self, t_k, inverse_diagonal)?;
            for (i, p) in p.iter().enumerate() {
                gram.before[i][k] = self.dot(p, &d_t)?;
            }
            for (i, t) in t[..k.max(1)].iter().enumerate() {
                gram.basis[i][k] = self.dot(t, &d_t)?;
            }
        }
        Ok(gram)
    }

    fn s_step_update(
        &self,
        x: &mut Vector<T>,
        p: &mut [Vector<T>],
        r: &[Vector<T>],
        b: &SmallMatrix,
        a: &[f64],
        a_before: &[f64],
    ) -> Result<(), LinalgError> {
        enough(p.len(), r.len(), a, a_before)?;
        let before: Vec<Vec<T>> = p[..a_before.len()].iter().map(|p| p.as_slice().to_vec()).collect();
        for (p, &a) in p.iter().zip(a_before) {
            self.axpby(x, T::from_f64(a), p, T::ONE)?;
        }
        for (j, r) in r.iter().enumerate() {
            self.copy(&mut p[j], r)?;
            for (l, before) in before.iter().enumerate() {
                let before = Buffer::from_host(self, before)?;
                self.axpby(&mut p[j], T::from_f64(b[(l, j)]), &before, T::ONE)?;
            }
            self.axpby(x, T::from_f64(a[j]), &p[j], T::ONE)?;
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
