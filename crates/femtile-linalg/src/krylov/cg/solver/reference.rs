use femtile_device::{Buffer, Reference, Scalar};

use super::{CgBegin, CgDiagonals, CgExtrapolate, CgFinish, CgSolverKernels, CgSums, start::decide};
use crate::LinalgError;
use crate::krylov::cg::CgScalars;
use crate::vector::VectorKernels;

type Sums = CgSums<Reference>;

impl<T: Scalar> CgSolverKernels<T> for Reference {
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
        self.copy(start, x)?;
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

    fn cg_sum_dot(
        &self,
        place: usize,
        x: &Buffer<T, Self>,
        y: &Buffer<T, Self>,
        sums: &mut Sums,
    ) -> Result<(), LinalgError> {
        sums.check(0)?;
        Sums::check_place(place)?;
        sums.first.as_mut_slice()[place] = self.dot(x, y)?;
        Ok(())
    }

    fn cg_decide(&self, scalars: &mut CgScalars<Self>, sums: &Sums) -> Result<(), LinalgError> {
        sums.check(0)?;
        decide(scalars, sums);
        Ok(())
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
