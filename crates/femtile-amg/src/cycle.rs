//! One multigrid cycle from zero.

use femtile_device::{Buffer, Scalar};
use femtile_linalg::sparse::csr::Csr;
use femtile_linalg::{LinalgError, LinearOperator};

use crate::Cycle;
use crate::hierarchy::{Coarsest, Hierarchy, Level, LevelShape};
use crate::inner::{Inner, solve_by_steps};
use crate::kernels::{AmgKernels, Smoothed, Step, Sweep, Swept};
use crate::relaxation::{Kind, Relaxation};

/// The vectors of a level.
#[derive(Debug)]
pub(crate) struct Vectors<H: Scalar, D: AmgKernels<H>> {
    pub b: Buffer<H, D>,
    pub x: Buffer<H, D>,
    next: Buffer<H, D>,
    direction: Buffer<H, D>,
    product: Buffer<H, D>,
    /// Where the level is solved by steps of conjugate gradients.
    pub(super) inner: Option<Inner<H, D>>,
}

impl<H: Scalar, D: AmgKernels<H>> Vectors<H, D> {
    fn new(device: &D, n: usize, has_inner: bool) -> Result<Self, LinalgError> {
        let zeros = || Buffer::zeros(device, n);
        let inner = if has_inner { Some(Inner::new(device, n)?) } else { None };
        Ok(Self { b: zeros()?, x: zeros()?, next: zeros()?, direction: zeros()?, product: zeros()?, inner })
    }

    /// Smooths from zero, in the order of rows before the coarser level.
    fn smooth_from_zero(
        &mut self,
        device: &D,
        a: &Csr<H, D>,
        by: &Relaxation<H, D>,
    ) -> Result<(), LinalgError> {
        match &by.kind {
            Kind::Patch(patch) => {
                let (x, r) = (&mut self.x, &mut self.next);
                device.patch_relax_from_zero(x, r, patch.smoother(&by.inverse_diagonal), &self.b)
            }
            Kind::Polynomial(steps) => {
                let Some((first, rest)) = steps.split_first() else { return Ok(()) };
                let (x, direction) = (&mut self.x, &mut self.direction);
                device.amg_first_step(x, direction, *first, &by.inverse_diagonal, &self.b)?;
                self.steps(device, a, &by.inverse_diagonal, rest)
            }
            Kind::GaussSeidel { sweeps, .. } => {
                self.sweep(device, Sweep::ForwardFromZero, a, by)?;
                (1..*sweeps).try_for_each(|_| self.sweep(device, Sweep::Forward, a, by))
            }
        }
    }

    /// $r = b - A x$ into `next`, after [`Vectors::smooth_from_zero`] and nothing else.
    fn first_residual(
        &mut self,
        device: &D,
        a: &Csr<H, D>,
        by: &Relaxation<H, D>,
    ) -> Result<(), LinalgError> {
        match &by.kind {
            // The other parts of it are there already.
            Kind::Patch(patch) => device.patch_subtract_outside(&mut self.next, &patch.matrix, &self.x),
            _ => self.residual(device, a),
        }
    }

    /// $r = b - A x$ into `next`.
    fn residual(&mut self, device: &D, a: &Csr<H, D>) -> Result<(), LinalgError> {
        device.amg_residual(&mut self.next, &mut self.product, a, &self.x, &self.b)
    }

    /// Smooths in the order of rows after the coarser level; `b` is undefined then.
    fn smooth(&mut self, device: &D, a: &Csr<H, D>, by: &Relaxation<H, D>) -> Result<(), LinalgError> {
        match &by.kind {
            Kind::Patch(patch) => {
                device.patch_subtract_outside(&mut self.b, &patch.matrix, &self.x)?;
                device.patch_relax(&mut self.x, patch.smoother(&by.inverse_diagonal), &self.b)
            }
            Kind::Polynomial(steps) => self.steps(device, a, &by.inverse_diagonal, steps),
            Kind::GaussSeidel { sweeps, .. } => {
                (0..*sweeps).try_for_each(|_| self.sweep(device, Sweep::Backward, a, by))
            }
        }
    }

    fn steps(
        &mut self,
        device: &D,
        a: &Csr<H, D>,
        inverse_diagonal: &Buffer<H, D>,
        steps: &[Step<H>],
    ) -> Result<(), LinalgError> {
        for &step in steps {
            let vectors = Smoothed {
                b: &self.b,
                inverse_diagonal,
                x: &self.x,
                next: &mut self.next,
                direction: &mut self.direction,
                product: &mut self.product,
            };
            device.amg_step(a, step, vectors)?;
            std::mem::swap(&mut self.x, &mut self.next);
        }
        Ok(())
    }

    fn sweep(
        &mut self,
        device: &D,
        sweep: Sweep,
        a: &Csr<H, D>,
        by: &Relaxation<H, D>,
    ) -> Result<(), LinalgError> {
        let Kind::GaussSeidel { block, .. } = by.kind else { return Ok(()) };
        let (x, before) = (&mut self.x, &mut self.next);
        let vectors = Swept { b: &self.b, inverse_diagonal: &by.inverse_diagonal, x, before };
        device.amg_sweep(sweep, a, block, vectors)
    }
}

/// The vectors of all levels, the finest first.
pub(crate) fn vectors<H: Scalar, D: AmgKernels<H>>(
    device: &D,
    hierarchy: &Hierarchy<H, D>,
) -> Result<Vec<Vectors<H, D>>, LinalgError> {
    let n_smoothed = hierarchy.levels.len();
    let has_inner = |level: usize| hierarchy.config.cycle == Cycle::K && (1..n_smoothed).contains(&level);
    let of_level =
        |(level, shape): (usize, &LevelShape)| Vectors::new(device, shape.n_rows, has_inner(level));
    hierarchy.shapes().iter().enumerate().map(of_level).collect()
}

/// $x = M^{-1} b$ on the finest of some levels.
///
/// # Source
/// `[fu2014]`, Algorithm 5.2, with patches Algorithm 5.3. The matrix of a V or W cycle is symmetric, since what comes
/// after is the adjoint of what comes before:
/// the same polynomial, or sweeps the other way round.
pub(crate) fn apply<H: Scalar, D: AmgKernels<H>>(
    device: &D,
    kind: Cycle,
    (levels, coarsest): (&[Level<H, D>], &Coarsest<H, D>),
    vectors: &mut [Vectors<H, D>],
) -> Result<(), LinalgError> {
    let Some((own, coarser)) = vectors.split_first_mut() else { return Ok(()) };
    let Some((level, rest)) = levels.split_first() else {
        return match coarsest {
            Coarsest::Direct(inverse) => inverse.apply(&mut own.x, &own.b),
            Coarsest::Smoothed { a, relaxation } => {
                own.smooth_from_zero(device, a, relaxation)?;
                own.smooth(device, a, relaxation)
            }
        };
    };
    own.smooth_from_zero(device, &level.a, &level.relaxation)?;
    let visits = match kind {
        Cycle::W if !rest.is_empty() => 2,
        Cycle::V | Cycle::W | Cycle::K => 1,
    };
    for visit in 0..visits {
        match visit {
            0 => own.first_residual(device, &level.a, &level.relaxation)?,
            _ => own.residual(device, &level.a)?,
        }
        level.restriction.apply(&mut coarser[0].b, &own.next)?;
        match rest.first() {
            Some(next) if kind == Cycle::K => {
                solve_by_steps(device, &next.a, coarser, &mut |coarser| {
                    apply(device, kind, (rest, coarsest), coarser)
                })?;
            }
            _ => apply(device, kind, (rest, coarsest), coarser)?,
        }
        device.amg_correct(&mut own.x, &mut own.product, &level.prolongation, &coarser[0].x)?;
    }
    own.smooth(device, &level.a, &level.relaxation)
}
