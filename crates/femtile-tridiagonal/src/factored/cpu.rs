use femtile_device::{Buffer, Cpu, Scalar};

use super::{FactoredKernels, Factors};
use crate::cpu::solve_panels;
use crate::cpu::sweep::{At, Batch, Elimination};
use crate::reference::host_choice;
use crate::thomas::cpu::substitute;
use crate::{Bands, BatchProblem, Ends, Work};
use femtile_device::cpu::vector::Vector;
use femtile_linalg::LinalgError;

impl<T: Scalar> FactoredKernels<T> for Cpu {
    fn factored_solve(
        &self,
        problem: &BatchProblem,
        factors: &Factors<T, Self>,
        u: &mut Buffer<T, Self>,
        d: Option<&Buffer<T, Self>>,
        work: &mut Work<T, Self>,
    ) -> Result<(), LinalgError> {
        let is_factored = problem.ends == Ends::Open;
        let (diagonal, upper) = match problem.ends {
            Ends::Open => (&factors.inverse, &factors.c_star),
            Ends::Periodic => (&factors.diagonal, &factors.upper),
        };
        let bands = Bands::Arrays { lower: &factors.lower, diagonal, upper };
        host_choice(problem)?;
        if !problem.check(u, bands, d, work)? {
            return Ok(());
        }
        solve_panels(self, &Batch::new(problem, u, bands, d), is_factored, &mut work.scratch).map(|_| ())
    }
}

/// Both sweeps with factors in the places of the bands: $a$, $r$ and $c^*$.
pub(crate) struct Factored;

impl<T: Scalar, V: Vector<T>> Elimination<T, V> for Factored {
    const SLOTS: usize = 2;
    const STATE: usize = 1;

    #[inline(always)]
    unsafe fn first(at: At<T>, [_, inverse, upper, d]: [V; 4]) -> V::Mask {
        // SAFETY: the caller promises memory of these sizes.
        unsafe {
            at.keep(0, upper);
            at.keep(1, d.mul(inverse));
        }
        inverse.always()
    }

    #[inline(always)]
    unsafe fn forward(at: At<T>, [lower, inverse, upper, d]: [V; 4]) -> V::Mask {
        // SAFETY: the caller promises memory of these sizes, and that the row before was eliminated.
        unsafe {
            at.keep(0, upper);
            at.keep(1, d.sub(lower.mul(at.previous().kept(1))).mul(inverse));
        }
        inverse.always()
    }

    #[inline(always)]
    unsafe fn turn(at: At<T>) -> V::Mask {
        // SAFETY: the caller promises that all rows were eliminated.
        let value: V = unsafe { at.kept(0) };
        value.always()
    }

    #[inline(always)]
    unsafe fn backward(at: At<T>) -> V {
        // SAFETY: the caller promises that all rows were eliminated.
        unsafe { substitute(at) }
    }
}
