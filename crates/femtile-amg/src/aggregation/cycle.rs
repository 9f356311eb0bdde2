//! The K cycle.

use femtile_device::{Buffer, Cpu, parallel};
use femtile_linalg::vector::VectorKernels;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sparse::csr::Csr;

use super::dense_factor::DenseFactor;
use super::incomplete_factor::IncompleteFactor;
use crate::setup::rows::{RowAccess, Rows};

/// The second step of GCR is left out if the first one reduces the residual to this share.
const ENOUGH: f64 = 0.25;
/// The second direction is used if this share of the square of its image is orthogonal to that of the first.
const INDEPENDENT: f64 = 1e-12;

/// A level that is smoothed, its rows in downstream order.
#[derive(Debug)]
pub(super) struct Level {
    pub a: Csr<f64, Cpu>,
    pub factor: IncompleteFactor,
    /// None on the last level if coarsening has ended early.
    pub transfer: Option<Transfer>,
}

/// The piecewise constant prolongator to a level from the next one.
#[derive(Debug)]
pub(super) struct Transfer {
    /// The prolongator; a row has one entry or none.
    p: Rows<f64>,
    restriction: Rows<f64>,
}

impl Transfer {
    /// Keeps a prolongator with its transpose.
    pub fn new(p: Rows<f64>) -> Self {
        Self { restriction: p.transpose(), p }
    }

    /// Changes the numbers of the aggregates.
    pub fn renumber(&mut self, places: &[u32]) {
        self.p.columns.iter_mut().for_each(|aggregate| *aggregate = places[*aggregate as usize]);
        self.restriction = self.p.transpose();
    }

    /// Returns the dense prolongator to the rows in the order before `order`.
    #[cfg(test)]
    pub fn to_dense(&self, order: &[u32]) -> Vec<Vec<f64>> {
        let mut dense = vec![vec![0.0; self.p.n_cols]; order.len()];
        for (row, &to) in order.iter().enumerate() {
            self.p.row(row).0.iter().for_each(|&aggregate| dense[to as usize][aggregate as usize] = 1.0);
        }
        dense
    }

    /// Computes $b = P^\mathsf{T} r$.
    fn restrict(&self, b: &mut [f64], r: &[f64]) {
        parallel::for_chunks_mut(b, parallel::CHEAP, |begin, b| {
            for (aggregate, b) in b.iter_mut().enumerate() {
                *b = self.restriction.row(begin + aggregate).0.iter().map(|&row| r[row as usize]).sum();
            }
        });
    }

    /// Adds $P c$ to `x`.
    fn correct(&self, x: &mut [f64], c: &[f64]) {
        parallel::for_chunks_mut(x, parallel::CHEAP, |begin, x| {
            for (row, x) in x.iter_mut().enumerate() {
                self.p.row(begin + row).0.iter().for_each(|&aggregate| *x += c[aggregate as usize]);
            }
        });
    }
}

/// The vectors of a level in a cycle.
#[derive(Debug)]
pub(super) struct Vectors {
    /// The right side.
    pub b: Buffer<f64, Cpu>,
    /// The solution.
    pub x: Buffer<f64, Cpu>,
    /// The residual.
    r: Buffer<f64, Cpu>,
    /// The first direction c of GCR, $v = A c$, and $w = A d$ with the second direction d; empty on the first level.
    gcr: [Buffer<f64, Cpu>; 3],
}

/// All levels.
#[derive(Debug)]
pub(super) struct Levels {
    /// The finest first.
    pub smoothed: Vec<Level>,
    /// The level below them; none if coarsening has ended early.
    pub coarsest: Option<DenseFactor>,
}

impl Levels {
    /// Returns whether a cycle is a linear map: no level is solved by steps of GCR.
    pub fn is_fixed(&self) -> bool {
        self.smoothed.len() < 2
    }

    /// Allocates the vectors of all levels, the finest first.
    pub fn vectors(&self, cpu: &Cpu) -> Result<Vec<Vectors>, LinalgError> {
        let of = |(level, n): (usize, usize)| {
            let zeros = |n| Buffer::zeros(cpu, n);
            let n_gcr = if level > 0 { n } else { 0 };
            let gcr = [zeros(n_gcr)?, zeros(n_gcr)?, zeros(n_gcr)?];
            Ok(Vectors { b: zeros(n)?, x: zeros(n)?, r: zeros(n)?, gcr })
        };
        let sizes = self.smoothed.iter().map(|level| level.a.n_rows());
        sizes.chain(self.coarsest.iter().map(DenseFactor::n_rows)).enumerate().map(of).collect()
    }

    /// Computes $x \approx A^{-1} b$ on a level: smoothing, the correction of the next level, smoothing. `vectors` are those of
    /// the level and all coarser ones.
    ///
    /// # Panics
    /// If `vectors` is empty.
    pub fn cycle(&self, cpu: &Cpu, level: usize, vectors: &mut [Vectors]) -> Result<(), LinalgError> {
        let (Vectors { b, x, r, .. }, coarser) = vectors.split_first_mut().expect("a level has vectors");
        cpu.copy(x, b)?;
        let Some(Level { a, factor, transfer }) = self.smoothed.get(level) else {
            self.coarsest.iter().for_each(|coarsest| coarsest.solve(x.as_mut_slice()));
            return Ok(());
        };
        factor.solve(x.as_mut_slice());
        residual(cpu, r, a, x, b)?;
        if let (Some(transfer), Some(next)) = (transfer, coarser.first_mut()) {
            transfer.restrict(next.b.as_mut_slice(), r.as_slice());
            self.solve_by_steps(cpu, level + 1, coarser)?;
            transfer.correct(x.as_mut_slice(), coarser[0].x.as_slice());
            residual(cpu, r, a, x, b)?;
        }
        factor.solve(r.as_mut_slice());
        cpu.axpby(x, 1.0, r, 1.0)
    }

    /// Computes $x \approx A^{-1} b$ by up to two steps of GCR preconditioned by the cycle, or directly on the coarsest level;
    /// `b` is overwritten.
    ///
    /// # Source
    /// `[notay2012]`; `[notay2010]` for the symmetric case.
    fn solve_by_steps(&self, cpu: &Cpu, level: usize, vectors: &mut [Vectors]) -> Result<(), LinalgError> {
        self.cycle(cpu, level, vectors)?;
        let Some(Level { a, .. }) = self.smoothed.get(level) else { return Ok(()) };
        let Vectors { b, x, gcr: [c, v, _], .. } = &mut vectors[0];
        std::mem::swap(x, c);
        a.apply(v, c)?;
        let (v_dot_v, b_dot_b) = (cpu.dot(v, v)?, cpu.dot(b, b)?);
        let first = if v_dot_v > 0.0 { cpu.dot(v, b)? / v_dot_v } else { 0.0 };
        cpu.axpby(b, -first, v, 1.0)?;
        if cpu.dot(b, b)? <= ENOUGH * ENOUGH * b_dot_b {
            return cpu.axpby(x, first, c, 0.0);
        }
        self.cycle(cpu, level, vectors)?;
        let Vectors { b, x: d, gcr: [c, v, w], .. } = &mut vectors[0];
        a.apply(w, d)?;
        let (w_dot_v, w_dot_w) = (cpu.dot(w, v)?, cpu.dot(w, w)?);
        let along = if v_dot_v > 0.0 { w_dot_v / v_dot_v } else { 0.0 };
        let square = w_dot_w - along * w_dot_v;
        let second = if square > INDEPENDENT * w_dot_w { cpu.dot(w, b)? / square } else { 0.0 };
        cpu.axpby(d, first - second * along, c, second)
    }
}

/// Computes $r = b - A x$.
fn residual(
    cpu: &Cpu,
    r: &mut Buffer<f64, Cpu>,
    a: &Csr<f64, Cpu>,
    x: &Buffer<f64, Cpu>,
    b: &Buffer<f64, Cpu>,
) -> Result<(), LinalgError> {
    a.apply(r, x)?;
    cpu.axpby(r, 1.0, b, -1.0)
}
