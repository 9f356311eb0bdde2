//! Batches on a processor: a system in each lane of a vector, panels of systems shared out between threads.

mod by_line;
pub(crate) mod panel;
mod plan;
mod stream;
pub(crate) mod sweep;
pub(crate) mod vector;

use std::any::TypeId;
use std::sync::atomic::AtomicU64;

use femtile_device::{Buffer, Cpu, Scalar};

use super::reference::{HOST_ALGORITHMS, host_choice};
use super::{Algorithm, Bands, Problem, TridiagonalKernels, Work};
use crate::LinalgError;
use sweep::{Batch, Source};

impl<T: Scalar> TridiagonalKernels<T> for Cpu {
    fn tridiagonal_algorithms(&self) -> &'static [Algorithm] {
        &HOST_ALGORITHMS
    }

    fn tridiagonal_choice(&self, problem: &Problem) -> Result<Algorithm, LinalgError> {
        host_choice(problem)
    }

    fn tridiagonal_solve(
        &self,
        problem: &Problem,
        u: &mut Buffer<T, Self>,
        bands: Bands<'_, T, Self>,
        d: Option<&Buffer<T, Self>>,
        work: &mut Work<T, Self>,
    ) -> Result<(), LinalgError> {
        let target = u.as_mut_slice().as_mut_ptr();
        let source = match bands {
            Bands::Arrays { lower, diagonal, upper } => {
                Source::Arrays([lower, diagonal, upper].map(|band| band.as_slice().as_ptr()))
            }
            Bands::Rule(rule) => Source::Rule(rule),
        };
        let batch = Batch {
            problem,
            u: target,
            d: d.map_or(target.cast_const(), |d| d.as_slice().as_ptr()),
            bands: source,
            n_failed: AtomicU64::new(0),
            first_failed: AtomicU64::new(u64::MAX),
        };
        let failed = if problem.algorithm == Algorithm::Thomas {
            solve_panels(self, &batch, false, &mut work.scratch)?
        } else {
            by_line::solve(self, &batch)
        };
        let status = work.status.as_mut_slice();
        status[0] += failed.0;
        status[1] = status[1].min(failed.1);
        Ok(())
    }
}

/// Solves with factors in the places of bands, which have no pivots that could fail.
pub(super) fn solve_factored<T: Scalar>(
    cpu: &Cpu,
    batch: &Batch<'_, T>,
    scratch: &mut Option<Buffer<T, Cpu>>,
) -> Result<(), LinalgError> {
    solve_panels(cpu, batch, true, scratch).map(|_| ())
}

fn solve_panels<T: Scalar>(
    cpu: &Cpu,
    batch: &Batch<'_, T>,
    is_factored: bool,
    scratch: &mut Option<Buffer<T, Cpu>>,
) -> Result<(u64, u64), LinalgError> {
    let mut memory = |len: usize| {
        if scratch.as_ref().is_none_or(|scratch| scratch.len() < len) {
            *scratch = Some(Buffer::zeros(cpu, len)?);
        }
        // The room was just made where there was none.
        Ok(scratch.as_mut().map_or(std::ptr::null_mut(), |scratch| scratch.as_mut_slice().as_mut_ptr()))
    };
    if TypeId::of::<T>() == TypeId::of::<f64>() {
        let batch = as_type::<T, f64>(batch);
        plan::solve_f64(cpu, batch, is_factored, &mut |len| memory(len).map(<*mut T>::cast))
    } else {
        let batch = as_type::<T, f32>(batch);
        plan::solve_f32(cpu, batch, is_factored, &mut |len| memory(len).map(<*mut T>::cast))
    }
}

/// The batch by the name of its type.
fn as_type<'b, 'a, T: Scalar, S: Scalar>(batch: &'b Batch<'a, T>) -> &'b Batch<'a, S> {
    assert!(TypeId::of::<T>() == TypeId::of::<S>(), "scalars are f32 or f64");
    // SAFETY: both types are the same.
    unsafe { &*std::ptr::from_ref(batch).cast() }
}
