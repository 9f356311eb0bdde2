use femtile_device::{Buffer, Reference, Scalar};

use super::{PipelinedCgKernels, PipelinedCgStep, PipelinedCgSums, PipelinedCgVectors};
use crate::LinalgError;
use crate::krylov::Preconditioning;
use crate::vector::VectorKernels;

impl<T: Scalar> PipelinedCgKernels<T> for Reference {
    fn pipelined_cg_update(
        &self,
        x: &mut Buffer<T, Self>,
        v: &mut PipelinedCgVectors<T, Self>,
        by: Preconditioning<'_, T, Self>,
        step: PipelinedCgStep,
    ) -> Result<PipelinedCgSums, LinalgError> {
        let (alpha, beta) = (T::from_f64(step.alpha), T::from_f64(step.beta));
        let scaled = |d, of: &Buffer<T, Self>| -> Result<Buffer<T, Self>, LinalgError> {
            let mut scaled = Buffer::zeros(self, of.len())?;
            self.scale_by(&mut scaled, d, of)?;
            Ok(scaled)
        };
        match by {
            Preconditioning::Identity => self.axpby(&mut v.p, T::ONE, &v.r, beta)?,
            Preconditioning::Diagonal(d) => self.axpby(&mut v.p, T::ONE, &scaled(d, &v.r)?, beta)?,
            Preconditioning::General => {
                self.axpby(&mut v.p, T::ONE, &v.u, beta)?;
                self.axpby(&mut v.q, T::ONE, &v.m, beta)?;
                self.axpby(&mut v.u, -alpha, &v.q, T::ONE)?;
            }
        }
        self.axpby(&mut v.s, T::ONE, &v.w, beta)?;
        self.axpby(&mut v.z, T::ONE, &v.n, beta)?;
        self.axpby(x, alpha, &v.p, T::ONE)?;
        self.axpby(&mut v.r, -alpha, &v.s, T::ONE)?;
        self.axpby(&mut v.w, -alpha, &v.z, T::ONE)?;
        let r_dot_r = self.dot(&v.r, &v.r)?;
        let (r_dot_u, w_dot_u) = match by {
            Preconditioning::Identity => (r_dot_r, self.dot(&v.w, &v.r)?),
            Preconditioning::Diagonal(d) => {
                v.m = scaled(d, &v.w)?;
                let u = scaled(d, &v.r)?;
                (self.dot(&v.r, &u)?, self.dot(&v.w, &u)?)
            }
            Preconditioning::General => (self.dot(&v.r, &v.u)?, self.dot(&v.w, &v.u)?),
        };
        Ok(PipelinedCgSums { r_dot_r, r_dot_u, w_dot_u })
    }
}
