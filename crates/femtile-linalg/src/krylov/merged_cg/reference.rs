use femtile_device::{Buffer, Reference, Scalar};

use super::{MergedCgKernels, MergedScalars, MergedVectors};
use crate::{LinalgError, LinearOperator};

/// $D^{-1} r$ in one row.
fn scaled<T: Scalar>(diagonal: (&Buffer<T, Reference>, usize), r: &Buffer<T, Reference>, row: usize) -> T {
    diagonal.0.as_slice()[row / diagonal.1] * r.as_slice()[row]
}

impl<T: Scalar> MergedCgKernels<T> for Reference {
    fn merged_cg_pass(
        &self,
        x: &mut Buffer<T, Self>,
        vectors: &mut MergedVectors<T, Self>,
        a: &dyn LinearOperator<T, Self>,
        diagonal: (&Buffer<T, Self>, usize),
        scalars: &mut MergedScalars<Self>,
    ) -> Result<(), LinalgError> {
        if scalars.has_ended() {
            return Ok(());
        }
        let update = scalars.update();
        let MergedVectors { r, p, v } = vectors;
        let [alpha, beta, of_p, of_late] =
            [update.alpha, update.beta, update.of_p, update.of_late].map(T::from_f64);
        for row in 0..r.len() {
            let late = p.as_slice()[row] - scaled(diagonal, r, row);
            x.as_mut_slice()[row] += of_p * p.as_slice()[row] + of_late * late;
            r.as_mut_slice()[row] -= alpha * v.as_slice()[row];
            p.as_mut_slice()[row] = scaled(diagonal, r, row) + beta * p.as_slice()[row];
        }
        a.apply(v, p)?;
        let sums = scalars.sums.as_mut_slice();
        sums.fill(0.0);
        for row in 0..r.len() {
            let [r1, p1, v1] = [&*r, &*p, &*v].map(|vector| vector.as_slice()[row].to_f64());
            let [dr, dv] = [&*r, &*v].map(|vector| scaled(diagonal, vector, row).to_f64());
            let terms = [r1 * r1, p1 * v1, r1 * v1, v1 * v1, r1 * dr, r1 * dv, v1 * dv];
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
        Ok(())
    }

    fn merged_cg_step(&self, scalars: &mut MergedScalars<Self>) -> Result<(), LinalgError> {
        scalars.step::<T>();
        Ok(())
    }

    fn merged_cg_finish(
        &self,
        x: &mut Buffer<T, Self>,
        vectors: &MergedVectors<T, Self>,
        diagonal: (&Buffer<T, Self>, usize),
        scalars: &MergedScalars<Self>,
    ) -> Result<(), LinalgError> {
        let [of_p, of_late] = scalars.not_taken().map(T::from_f64);
        for row in 0..x.len() {
            let p = vectors.p.as_slice()[row];
            x.as_mut_slice()[row] += of_p * p + of_late * (p - scaled(diagonal, &vectors.r, row));
        }
        Ok(())
    }
}
