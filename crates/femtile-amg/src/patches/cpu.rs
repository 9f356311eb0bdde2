//! The patch smoother on the CPU: a thread processes one patch at a time, with its block and vectors in
//! cache.

use femtile_device::cpu::SharedMut;
use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::LinalgError;

use super::matrix::Inside;
use super::{PatchKernels, PatchMatrix, PatchSmoother};

/// Entries of a local vector of a patch: a power of two, so that no local column is out of bounds.
const ROOM: usize = 512;
/// Rows whose sums are formed together.
const LANES: usize = 8;
/// The fewest patches, and rows with entries outside, of a thread.
const MIN_PATCHES: usize = 8;
const MIN_ROWS: usize = 2_048;

/// A vector of a patch.
type Local<H> = [H; ROOM];

/// Kernels on one patch.
impl<H: Scalar> PatchSmoother<H, Cpu> {
    /// $y = A_I x$ on one patch.
    #[inline(always)]
    fn product(&self, patch: usize, x: &Local<H>, y: &mut [H]) {
        match &self.matrix.inside {
            Inside::FullRowEll { starts, columns, values } => {
                let (starts, columns, values) = (starts.as_slice(), columns.as_slice(), values.as_slice());
                let range = starts[patch] as usize..starts[patch + 1] as usize;
                by_columns(&columns[range.clone()], &values[range], x, y);
            }
            Inside::Csr { offsets, columns, values } => {
                let (offsets, columns, values) = (offsets.as_slice(), columns.as_slice(), values.as_slice());
                let rows = self.matrix.rows(patch);
                for (y, ends) in y.iter_mut().zip(offsets[rows.start..=rows.end].windows(2)) {
                    let range = ends[0] as usize..ends[1] as usize;
                    let entries = columns[range.clone()].iter().zip(&values[range]);
                    *y = entries.map(|(&column, &value)| value * x[column as usize % ROOM]).sum();
                }
            }
            Inside::SymmetricCoo { starts, rows, columns, values } => {
                y.fill(H::ZERO);
                let (starts, rows) = (starts.as_slice(), rows.as_slice());
                let (columns, values) = (columns.as_slice(), values.as_slice());
                let range = starts[patch] as usize..starts[patch + 1] as usize;
                let places = rows[range.clone()].iter().zip(&columns[range.clone()]);
                for ((&row, &column), &value) in places.zip(&values[range]) {
                    let (row, column) = (row as usize, column as usize);
                    y[row] += value * x[column % ROOM];
                    y[column] += value * x[row % ROOM];
                }
            }
        }
    }

    /// $r = b - (A_I + A_D) x$ on one patch.
    #[inline(always)]
    fn residual(&self, patch: usize, b: &[H], x: &Local<H>, r: &mut [H]) {
        self.product(patch, x, r);
        let diagonal = &self.matrix.diagonal.as_slice()[self.matrix.rows(patch)];
        for (((r, &b), &d), &x) in r.iter_mut().zip(b).zip(diagonal).zip(x) {
            *r = b - (d * x + *r);
        }
    }

    /// $g = M^{-1} r$ on one patch.
    #[inline(always)]
    fn solve(&self, patch: usize, r: &[H], g: &mut Local<H>, workspace: &mut [H]) {
        let scale = &self.scale.as_slice()[self.matrix.rows(patch)];
        g.iter_mut().zip(scale).zip(r).for_each(|((g, &s), &r)| *g = s * r);
        for _ in 1..self.inner {
            self.residual(patch, r, g, workspace);
            g.iter_mut()
                .zip(scale)
                .zip(workspace.iter())
                .for_each(|((g, &s), &workspace)| *g += s * workspace);
        }
    }

    #[inline(always)]
    fn first_step(&self, patch: usize, b: &[H], x: &mut [H], r: &mut [H]) {
        let mut g = [H::ZERO; ROOM];
        self.solve(patch, b, &mut g, r);
        g[..b.len()].iter_mut().for_each(|g| *g *= self.omega);
        x.copy_from_slice(&g[..b.len()]);
        self.residual(patch, b, &g, r);
    }

    #[inline(always)]
    fn step(&self, patch: usize, b: &[H], x: &mut [H]) {
        let (mut g, mut r, mut workspace) = ([H::ZERO; ROOM], [H::ZERO; ROOM], [H::ZERO; ROOM]);
        let n = b.len();
        g[..n].copy_from_slice(x);
        self.residual(patch, b, &g, &mut r[..n]);
        self.solve(patch, &r[..n], &mut g, &mut workspace[..n]);
        x.iter_mut().zip(&g).for_each(|(x, &g)| *x += self.omega * g);
    }
}

/// A product with rows of equal length, all first entries first; each row adds in the order of its entries.
#[inline(always)]
fn by_columns<H: Scalar>(columns: &[u16], values: &[H], x: &Local<H>, y: &mut [H]) {
    let n = y.len();
    let (mut groups, mut first) = (y.chunks_exact_mut(LANES), 0);
    for y in &mut groups {
        let mut sums = [H::ZERO; LANES];
        for (columns, values) in columns.chunks_exact(n).zip(values.chunks_exact(n)) {
            let (columns, values) = (&columns[first..first + LANES], &values[first..first + LANES]);
            for lane in 0..LANES {
                sums[lane] += values[lane] * x[columns[lane] as usize % ROOM];
            }
        }
        y.copy_from_slice(&sums);
        first += LANES;
    }
    for (lane, y) in groups.into_remainder().iter_mut().enumerate() {
        let row = first + lane;
        let entries = columns.chunks_exact(n).zip(values.chunks_exact(n));
        *y = entries.map(|(columns, values)| values[row] * x[columns[row] as usize % ROOM]).sum();
    }
}

impl<H: Scalar> PatchKernels<H> for Cpu {
    fn patch_relax_from_zero(
        &self,
        x: &mut Buffer<H, Self>,
        r: &mut Buffer<H, Self>,
        by: &PatchSmoother<H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        by.matrix.need_vectors(&[("x", &*x), ("r", &*r), ("b", b), ("scale", &by.scale)])?;
        let b = b.as_slice();
        let (x, r) = (SharedMut::new(x.as_mut_slice()), SharedMut::new(r.as_mut_slice()));
        self.for_ranges(by.matrix.n_patches(), MIN_PATCHES, |patches| {
            self.vectorize(
                #[inline(always)]
                || {
                    for patch in patches {
                        let rows = by.matrix.rows(patch);
                        // SAFETY: patches do not overlap.
                        let (x, r) = unsafe { (x.range(rows.clone()), r.range(rows.clone())) };
                        by.first_step(patch, &b[rows], x, r);
                    }
                },
            );
        });
        Ok(())
    }

    fn patch_relax(
        &self,
        x: &mut Buffer<H, Self>,
        by: &PatchSmoother<H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        by.matrix.need_vectors(&[("x", &*x), ("b", b), ("scale", &by.scale)])?;
        let b = b.as_slice();
        let x = SharedMut::new(x.as_mut_slice());
        self.for_ranges(by.matrix.n_patches(), MIN_PATCHES, |patches| {
            self.vectorize(
                #[inline(always)]
                || {
                    for patch in patches {
                        let rows = by.matrix.rows(patch);
                        // SAFETY: patches do not overlap.
                        by.step(patch, &b[rows.clone()], unsafe { x.range(rows) });
                    }
                },
            );
        });
        Ok(())
    }

    fn patch_subtract_outside(
        &self,
        y: &mut Buffer<H, Self>,
        matrix: &PatchMatrix<H, Self>,
        x: &Buffer<H, Self>,
    ) -> Result<(), LinalgError> {
        matrix.need_vectors(&[("y", &*y), ("x", x)])?;
        let outside = &matrix.outside;
        let (rows, offsets) = (outside.rows.as_slice(), outside.offsets.as_slice());
        let (columns, values) = (outside.columns.as_slice(), outside.values.as_slice());
        let (x, y) = (x.as_slice(), SharedMut::new(y.as_mut_slice()));
        self.for_ranges(rows.len(), MIN_ROWS, |places| {
            for place in places {
                let range = offsets[place] as usize..offsets[place + 1] as usize;
                let entries = columns[range.clone()].iter().zip(&values[range]);
                let sum: H = entries.map(|(&column, &value)| value * x[column as usize]).sum();
                let row = rows[place] as usize;
                // SAFETY: each row is listed once.
                let y = unsafe { y.range(row..row + 1) };
                y[0] -= sum;
            }
        });
        Ok(())
    }
}
