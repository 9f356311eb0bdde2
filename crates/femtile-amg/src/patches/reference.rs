//! The smoother by patches in plain loops: the oracle.

use femtile_device::{Buffer, Reference, Scalar};
use femtile_linalg::LinalgError;

use super::matrix::Inside;
use super::{PatchKernels, PatchMatrix, PatchSmoother};

/// $(A_I + A_D) x$ on one patch.
fn product<H: Scalar>(matrix: &PatchMatrix<H, Reference>, patch: usize, x: &[H]) -> Vec<H> {
    let rows = matrix.rows(patch);
    let (begin, n) = (rows.start, rows.len());
    let mut y: Vec<H> = (0..n).map(|i| matrix.diagonal.as_slice()[begin + i] * x[i]).collect();
    match &matrix.inside {
        Inside::FullRowEll { starts, columns, values } => {
            let starts = starts.as_slice();
            for at in starts[patch] as usize..starts[patch + 1] as usize {
                let row = (at - starts[patch] as usize) % n;
                y[row] += values.as_slice()[at] * x[columns.as_slice()[at] as usize];
            }
        }
        Inside::Csr { offsets, columns, values } => {
            for (ends, y) in offsets.as_slice()[begin..=begin + n].windows(2).zip(&mut y) {
                for at in ends[0] as usize..ends[1] as usize {
                    *y += values.as_slice()[at] * x[columns.as_slice()[at] as usize];
                }
            }
        }
        Inside::SymmetricCoo { starts, rows, columns, values } => {
            let starts = starts.as_slice();
            for at in starts[patch] as usize..starts[patch + 1] as usize {
                let (row, column) = (rows.as_slice()[at] as usize, columns.as_slice()[at] as usize);
                y[row] += values.as_slice()[at] * x[column];
                y[column] += values.as_slice()[at] * x[row];
            }
        }
    }
    y
}

/// $M^{-1} r$ on one patch.
fn solve<H: Scalar>(by: &PatchSmoother<H, Reference>, patch: usize, r: &[H]) -> Vec<H> {
    let scale = &by.scale.as_slice()[by.matrix.rows(patch)];
    let mut g: Vec<H> = (0..r.len()).map(|i| scale[i] * r[i]).collect();
    for _ in 1..by.inner {
        let y = product(&by.matrix, patch, &g);
        (0..r.len()).for_each(|i| g[i] += scale[i] * (r[i] - y[i]));
    }
    g
}

impl<H: Scalar> PatchKernels<H> for Reference {
    fn patch_relax_from_zero(
        &self,
        x: &mut Buffer<H, Self>,
        r: &mut Buffer<H, Self>,
        by: &PatchSmoother<H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        for patch in 0..by.matrix.n_patches() {
            let rows = by.matrix.rows(patch);
            let b = &b.as_slice()[rows.clone()];
            let own: Vec<H> = solve(by, patch, b).into_iter().map(|g| by.omega * g).collect();
            let y = product(&by.matrix, patch, &own);
            for (i, row) in rows.enumerate() {
                x.as_mut_slice()[row] = own[i];
                r.as_mut_slice()[row] = b[i] - y[i];
            }
        }
        Ok(())
    }

    fn patch_relax(
        &self,
        x: &mut Buffer<H, Self>,
        by: &PatchSmoother<H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        for patch in 0..by.matrix.n_patches() {
            let rows = by.matrix.rows(patch);
            let y = product(&by.matrix, patch, &x.as_slice()[rows.clone()]);
            let r: Vec<H> = rows.clone().map(|row| b.as_slice()[row] - y[row - rows.start]).collect();
            let step = solve(by, patch, &r);
            rows.zip(step).for_each(|(row, g)| x.as_mut_slice()[row] += by.omega * g);
        }
        Ok(())
    }

    fn patch_subtract_outside(
        &self,
        y: &mut Buffer<H, Self>,
        matrix: &PatchMatrix<H, Self>,
        x: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        let outside = &matrix.outside;
        for (i, &row) in outside.rows.as_slice().iter().enumerate() {
            let offsets = &outside.offsets.as_slice()[i..];
            for at in offsets[0] as usize..offsets[1] as usize {
                let column = outside.columns.as_slice()[at] as usize;
                y.as_mut_slice()[row as usize] -= outside.values.as_slice()[at] * x.as_slice()[column];
            }
        }
        Ok(())
    }
}
