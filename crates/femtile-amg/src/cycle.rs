//! One multigrid cycle from zero.

use femtile_device::Scalar;
use femtile_linalg::precondition::polynomial::Iterate;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sparse::ProductMatrix;

use crate::Cycle;
use crate::hierarchy::{Coarsest, Hierarchy, Level, LevelShape};
use crate::inner::{Inner, solve_by_steps};
use crate::kernels::{AmgKernels, Sweep, Swept};
use crate::relaxation::{Kind, Relaxation};

/// The vectors of a level.
#[derive(Debug)]
pub(crate) struct Vectors<H: Scalar, D: AmgKernels<H>> {
    pub own: Iterate<H, D>,
    /// Where the level is solved by steps of conjugate gradients.
    pub(super) inner: Option<Inner<H, D>>,
}

impl<H: Scalar, D: AmgKernels<H>> Vectors<H, D> {
    fn new(device: &D, n: usize, has_inner: bool) -> Result<Self, LinalgError> {
        let inner = if has_inner { Some(Inner::new(device, n)?) } else { None };
        Ok(Self { own: Iterate::zeros(device, n)?, inner })
    }

    /// Smooths from zero, in the order of rows before the coarser level.
    fn smooth_from_zero(
        &mut self,
        device: &D,
        a: &ProductMatrix<H, D>,
        by: &Relaxation<H, D>,
    ) -> Result<(), LinalgError> {
        match &by.kind {
            Kind::Patch(patch) => {
                let (x, r) = (&mut self.own.x, &mut self.own.next);
                device.patch_relax_from_zero(x, r, patch.smoother(&by.inverse_diagonal), &self.own.b)
            }
            Kind::Polynomial(steps) => self.own.relax_from_zero(a, steps, &by.inverse_diagonal),
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
        a: &ProductMatrix<H, D>,
        by: &Relaxation<H, D>,
    ) -> Result<(), LinalgError> {
        match &by.kind {
            // The other parts of it are there already.
            Kind::Patch(patch) => {
                device.patch_subtract_outside(&mut self.own.next, &patch.matrix, &self.own.x)
            }
            _ => self.own.residual(a),
        }
    }

    /// Smooths in the order of rows after the coarser level; `b` is undefined then.
    fn smooth(
        &mut self,
        device: &D,
        a: &ProductMatrix<H, D>,
        by: &Relaxation<H, D>,
    ) -> Result<(), LinalgError> {
        match &by.kind {
            Kind::Patch(patch) => {
                device.patch_subtract_outside(&mut self.own.b, &patch.matrix, &self.own.x)?;
                device.patch_relax(&mut self.own.x, patch.smoother(&by.inverse_diagonal), &self.own.b)
            }
            Kind::Polynomial(steps) => self.own.relax(a, steps, &by.inverse_diagonal),
            Kind::GaussSeidel { sweeps, .. } => {
                (0..*sweeps).try_for_each(|_| self.sweep(device, Sweep::Backward, a, by))
            }
        }
    }

    fn sweep(
        &mut self,
        device: &D,
        sweep: Sweep,
        a: &ProductMatrix<H, D>,
        by: &Relaxation<H, D>,
    ) -> Result<(), LinalgError> {
        // A level that is smoothed by sweeps stays in rows.
        let (Kind::GaussSeidel { block, .. }, ProductMatrix::Rows(a)) = (&by.kind, a) else { return Ok(()) };
        let (x, before) = (&mut self.own.x, &mut self.own.next);
        let vectors = Swept { b: &self.own.b, inverse_diagonal: &by.inverse_diagonal, x, before };
        device.amg_sweep(sweep, a, *block, vectors)
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
    let Some((finest, coarser)) = vectors.split_first_mut() else { return Ok(()) };
    let Some((level, rest)) = levels.split_first() else {
        return match coarsest {
            Coarsest::Direct(inverse) => inverse.apply(&mut finest.own.x, &finest.own.b),
            Coarsest::Smoothed { a, relaxation } => {
                finest.smooth_from_zero(device, a, relaxation)?;
                finest.smooth(device, a, relaxation)
            }
        };
    };
    finest.smooth_from_zero(device, &level.a, &level.relaxation)?;
    let visits = match kind {
        Cycle::W if !rest.is_empty() => 2,
        Cycle::V | Cycle::W | Cycle::K => 1,
    };
    for visit in 0..visits {
        match visit {
            0 => finest.first_residual(device, &level.a, &level.relaxation)?,
            _ => finest.own.residual(&level.a)?,
        }
        level.restriction.apply(&mut coarser[0].own.b, &finest.own.next)?;
        match rest.first() {
            Some(next) if kind == Cycle::K => {
                solve_by_steps(device, &next.a, coarser, &mut |coarser| {
                    apply(device, kind, (rest, coarsest), coarser)
                })?;
            }
            _ => apply(device, kind, (rest, coarsest), coarser)?,
        }
        device.amg_correct(
            &mut finest.own.x,
            &mut finest.own.product,
            &level.prolongation,
            &coarser[0].own.x,
        )?;
    }
    finest.smooth(device, &level.a, &level.relaxation)
}
