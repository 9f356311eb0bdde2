//! The vectors of a cycle, and smoothing of them.

use femtile_device::{Buffer, Scalar};
use femtile_linalg::precondition::polynomial::Iterate;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sparse::ProductMatrix;

use crate::Cycle;
use crate::kernels::{AmgKernels, Sweep, Swept};
use crate::level::LevelMatrix;
use crate::levels::Levels;
use crate::relaxation::Relaxation;

/// Further vectors of a level that a K cycle solves by steps of conjugate gradients.
#[derive(Debug)]
pub(crate) struct KVectors<H: Scalar, D: AmgKernels<H>> {
    /// The first direction.
    pub c: Buffer<H, D>,
    /// $v = A c$.
    pub v: Buffer<H, D>,
    /// $w = A d$ with the second direction d.
    pub w: Buffer<H, D>,
}

impl<H: Scalar, D: AmgKernels<H>> KVectors<H, D> {
    /// Allocates the vectors of a level of `n` rows.
    fn new(device: &D, n: usize) -> Result<Self, LinalgError> {
        Ok(Self { c: Buffer::zeros(device, n)?, v: Buffer::zeros(device, n)?, w: Buffer::zeros(device, n)? })
    }
}

/// Vectors of a level.
#[derive(Debug)]
pub(crate) struct Vectors<H: Scalar, D: AmgKernels<H>> {
    pub own: Iterate<H, D>,
    /// The counter with which blocks of threads wait for each other in [`AmgKernels::amg_tail`].
    pub arrivals: Buffer<u32, D>,
    /// On levels that a K cycle solves by steps of conjugate gradients.
    pub inner: Option<KVectors<H, D>>,
}

impl<H: Scalar, D: AmgKernels<H>> Vectors<H, D> {
    fn new(device: &D, n: usize, has_inner: bool) -> Result<Self, LinalgError> {
        let inner = if has_inner { Some(KVectors::new(device, n)?) } else { None };
        Ok(Self { own: Iterate::zeros(device, n)?, arrivals: Buffer::zeros(device, 1)?, inner })
    }

    /// Applies the pre-smoother from a zero iterate.
    pub fn smooth_from_zero(
        &mut self,
        device: &D,
        a: &LevelMatrix<H, D>,
        by: &Relaxation<H, D>,
    ) -> Result<(), LinalgError> {
        match by {
            Relaxation::Patches(patches) => patches.smooth_from_zero(device, &mut self.own),
            Relaxation::Polynomial { steps, inverse_diagonal } => {
                self.own.relax_from_zero(a, steps, inverse_diagonal)
            }
            Relaxation::GaussSeidel { sweeps, .. } => {
                self.sweep(device, Sweep::ForwardFromZero, a, by)?;
                (1..*sweeps).try_for_each(|_| self.sweep(device, Sweep::Forward, a, by))
            }
        }
    }

    /// Computes $r = b - A x$ into `next`, directly after [`Vectors::smooth_from_zero`].
    pub fn first_residual(
        &mut self,
        device: &D,
        a: &LevelMatrix<H, D>,
        by: &Relaxation<H, D>,
    ) -> Result<(), LinalgError> {
        match by {
            Relaxation::Patches(patches) => patches.first_residual(device, &mut self.own),
            _ => self.own.residual(a),
        }
    }

    /// Applies the post-smoother, the adjoint of the pre-smoother; `b` is undefined afterwards.
    pub fn smooth(
        &mut self,
        device: &D,
        a: &LevelMatrix<H, D>,
        by: &Relaxation<H, D>,
    ) -> Result<(), LinalgError> {
        match by {
            Relaxation::Patches(patches) => patches.smooth(device, &mut self.own),
            Relaxation::Polynomial { steps, inverse_diagonal } => self.own.relax(a, steps, inverse_diagonal),
            Relaxation::GaussSeidel { sweeps, .. } => {
                (0..*sweeps).try_for_each(|_| self.sweep(device, Sweep::Backward, a, by))
            }
        }
    }

    fn sweep(
        &mut self,
        device: &D,
        sweep: Sweep,
        a: &LevelMatrix<H, D>,
        by: &Relaxation<H, D>,
    ) -> Result<(), LinalgError> {
        // The matrix of a level with Gauss–Seidel sweeps is in compressed rows.
        let (Relaxation::GaussSeidel { block, inverse_diagonal, .. }, ProductMatrix::Rows(a)) = (by, &a.own)
        else {
            return Ok(());
        };
        let (x, before) = (&mut self.own.x, &mut self.own.next);
        let vectors = Swept { b: &self.own.b, inverse_diagonal, x, before };
        device.amg_sweep(sweep, a, *block, vectors)
    }
}

/// Allocates the vectors of all levels, the finest first.
pub(crate) fn vectors<H: Scalar, D: AmgKernels<H>>(
    device: &D,
    levels: &Levels<H, D>,
) -> Result<Vec<Vectors<H, D>>, LinalgError> {
    let n_smoothed = levels.levels.len();
    let has_inner =
        |level: usize| levels.hierarchy.config.cycle == Cycle::K && (1..n_smoothed).contains(&level);
    let sizes = levels.levels.iter().map(|level| level.a.n_rows()).chain([levels.coarsest.n_rows()]);
    sizes.enumerate().map(|(level, n)| Vectors::new(device, n, has_inner(level))).collect()
}
