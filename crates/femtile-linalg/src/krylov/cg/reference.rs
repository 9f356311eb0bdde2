use femtile_device::{Buffer, Reference, Scalar};

use super::{CgBegin, CgDiagonals, CgExtrapolate, CgFinish, CgKernels, CgScalars, CgSums, scalars as host};
use crate::vector::VectorKernels;
use crate::{LinalgError, error::need};

type Scalars = CgScalars<Reference>;
type Sums = CgSums<Reference>;

impl<T: Scalar> CgKernels<T> for Reference {
    host::on_host!();

    fn cg_extrapolate(&self, vectors: CgExtrapolate<'_, T, Self>, weight: T) -> Result<(), LinalgError> {
        vectors.check()?;
        let CgExtrapolate { x, previous_x, q, previous_q, r } = vectors;
        let (x, previous_x) = (x.as_mut_slice(), previous_x.as_mut_slice());
        let (q, previous_q, r) = (q.as_slice(), previous_q.as_mut_slice(), r.as_mut_slice());
        for i in 0..x.len() {
            r[i] = q[i] + weight * (q[i] - previous_q[i]);
            let guess = x[i] + weight * (x[i] - previous_x[i]);
            (previous_x[i], previous_q[i], x[i]) = (x[i], q[i], guess);
        }
        Ok(())
    }

    fn cg_begin(
        &self,
        vectors: CgBegin<'_, T, Self>,
        diagonals: CgDiagonals<'_, T, Self>,
        sums: &mut Sums,
    ) -> Result<(), LinalgError> {
        vectors.check(&diagonals)?;
        sums.check(0)?;
        let CgBegin { r, p, start, b, x } = vectors;
        self.axpby(r, T::ONE, b, -T::ONE)?;
        start.map_or(Ok(()), |start| self.copy(start, x))?;
        let place = sums.first.as_mut_slice();
        place[Sums::B_DOT_B] = self.dot(b, b)?;
        place[Sums::R_DOT_R] = self.dot(r, r)?;
        if let Some(m) = diagonals.m {
            self.scale_by(p, m, r)?;
            place[Sums::R_DOT_Z] = self.dot(r, p)?;
        }
        if let Some(test) = diagonals.test {
            let mut scaled = Buffer::zeros(self, b.len())?;
            self.scale_by(&mut scaled, test, b)?;
            place[Sums::B_RHO] = self.dot(b, &scaled)?;
            place[Sums::B_NORM] = self.dot(&scaled, &scaled)?;
        }
        Ok(())
    }

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

    fn cg_finish(&self, vectors: CgFinish<'_, T, Self>, sums: &mut Sums) -> Result<(), LinalgError> {
        vectors.check()?;
        sums.check(0)?;
        let CgFinish { q, b, x, z, test } = vectors;
        let mut r = Buffer::from_host(self, q.as_slice())?;
        self.axpby(&mut r, T::ONE, b, -T::ONE)?;
        let place = sums.last.as_mut_slice();
        place[Sums::R_DOT_R] = self.dot(&r, &r)?;
        place[Sums::X_DOT_B] = self.dot(x, b)?;
        place[Sums::X_DOT_R] = self.dot(x, &r)?;
        if let Some(test) = test {
            let mut scaled = Buffer::zeros(self, b.len())?;
            self.scale_by(&mut scaled, test, &r)?;
            place[Sums::R_RHO] = self.dot(&r, &scaled)?;
            place[Sums::R_NORM] = self.dot(&scaled, &scaled)?;
        }
        if let Some(z) = z {
            place[Sums::LAST_Z] = self.dot(z, z)?;
        }
        Ok(())
    }
}
