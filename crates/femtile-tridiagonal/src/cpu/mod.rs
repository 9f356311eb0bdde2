//! Batches on a processor: a system in each lane of a vector, panels of systems shared out between threads.

mod ahead;
mod by_line;
mod failures;
pub(crate) mod panel;
mod plan;
mod stream;
pub(crate) mod sweep;
mod worker;

use std::any::TypeId;

use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::LinalgError;

use super::reference::{HOST_ALGORITHMS, host_choice};
use super::{Algorithm, Bands, Problem, TridiagonalKernels, Work};
use sweep::Batch;

/// Bytes of a line of the cache.
pub(crate) const LINE: usize = 64;

/// Entries below which a further thread costs more than it brings.
const MIN_ENTRIES: usize = 8192;

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
        let algorithm = host_choice(problem)?;
        if !problem.check(u, bands, d, work)? {
            return Ok(());
        }
        let batch = Batch::new(problem, u, bands, d);
        let failed = if algorithm == Algorithm::Thomas {
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

/// Solves panel by panel; factors may stand in the places of the bands.
pub(super) fn solve_panels<T: Scalar>(
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
