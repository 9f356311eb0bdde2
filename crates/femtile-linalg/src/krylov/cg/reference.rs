use femtile_device::{Buffer, Reference, Scalar};

use super::{CgKernels, CgScalars, scalars as host};
use crate::vector::VectorKernels;
use crate::{LinalgError, error::need};

type Scalars = CgScalars<Reference>;

impl<T: Scalar> CgKernels<T> for Reference {
    host::on_host!();

    fn cg_residual(
        &self,
        r: &mut Buffer<T, Self>,
        q: &Buffer<T, Self>,
        inverse_diagonal: Option<&Buffer<T, Self>>,
        scalars: &mut Scalars,
    ) -> Result<(), LinalgError> {
        let alpha = T::from_f64(host::alpha_beta(scalars).0);
        self.axpby(r, -alpha, q, T::ONE)?;
        let r_dot_r = self.dot(r, r)?;
        scalars.r_sums.as_mut_slice()[Scalars::R_DOT_R] = r_dot_r;
        if let Some(d) = inverse_diagonal {
            need("inverse_diagonal", r.len(), d.len())?;
            let terms = r.as_slice().iter().zip(d.as_slice());
            let r_dot_z = terms.map(|(r, d)| r.to_f64() * (d.to_f64() * r.to_f64())).sum();
            scalars.r_sums.as_mut_slice()[Scalars::R_DOT_Z] = r_dot_z;
        }
        Ok(())
    }

    fn cg_direction(
        &self,
        p: &mut Buffer<T, Self>,
        x: &mut Buffer<T, Self>,
        z: &Buffer<T, Self>,
        inverse_diagonal: Option<&Buffer<T, Self>>,
        scalars: &mut Scalars,
    ) -> Result<(), LinalgError> {
        let (alpha, beta) = host::alpha_beta(scalars);
        let (alpha, beta) = (T::from_f64(alpha), T::from_f64(beta));
        if alpha != T::ZERO {
            self.axpby(x, alpha, p, T::ONE)?;
        }
        match inverse_diagonal {
            None => self.axpby(p, T::ONE, z, beta),
            Some(d) => {
                need("z", p.len(), z.len())?;
                need("inverse_diagonal", p.len(), d.len())?;
                for ((p, &z), &d) in p.as_mut_slice().iter_mut().zip(z.as_slice()).zip(d.as_slice()) {
                    *p = d * z + beta * *p;
                }
                Ok(())
            }
        }
    }
}
