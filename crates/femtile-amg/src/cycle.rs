//! One V, W or K cycle from zero.

use femtile_device::Scalar;
use femtile_linalg::{LinalgError, LinearOperator};

use crate::Cycle;
use crate::k_cycle::solve_by_steps;
use crate::kernels::{AmgKernels, Tail};
use crate::level::{Coarsest, Level};
use crate::vectors::Vectors;

/// Computes $x = M^{-1} b$ on the first of `levels`; $M^{-1}$ is one cycle over all of them.
///
/// Collective if levels are divided among ranks. $M^{-1}$ of a V or W cycle is symmetric: post-smoothing is the adjoint of
/// pre-smoothing, by the same polynomial or by sweeps in reverse order.
///
/// # Source
/// `[fu2014]`, Algorithm 5.2, with patches Algorithm 5.3.
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
        let tail = Tail {
            restriction: &level.transfer.restriction,
            residual: &finest.own.next,
            levels: rest,
            coarsest,
            vectors: coarser,
        };
        let is_alone = level.transfer.exchange.is_none();
        let is_done = kind == Cycle::V && is_alone && device.amg_tail(tail)?;
        if !is_done {
            level.transfer.restrict(&mut coarser[0].own.b, &finest.own.next)?;
        }
        match rest.first() {
            _ if is_done => {}
            Some(next) if kind == Cycle::K => {
                solve_by_steps(device, &next.a, coarser, &mut |coarser| {
                    apply(device, kind, (rest, coarsest), coarser)
                })?;
            }
            _ => apply(device, kind, (rest, coarsest), coarser)?,
        }
        level.transfer.correct(&mut finest.own.x, &mut finest.own.product, &coarser[0].own.x)?;
    }
    finest.smooth(device, &level.a, &level.relaxation)
}
