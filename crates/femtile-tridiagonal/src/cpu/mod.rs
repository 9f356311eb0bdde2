//! Batches on a processor: a system in each lane of a vector, panels of systems shared out between threads.
//!
//! `Elimination` defines the work on one row of a vector of systems. A panel is eliminated while the one before is
//! substituted back.

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

use super::reference::{HOST_ALGORITHMS, bytes_by_line, host_choice};
use super::{Algorithm, Bands, BatchProblem, TridiagonalKernels, Work};
use plan::MemoryOf;
use sweep::{Batch, Source};

/// Bytes of a line of the cache.
pub(crate) const LINE: usize = 64;

/// Batches of more entries than this are not planned: no memory holds them.
const MOST_PLANNED: usize = 1 << 50;

/// Entries below which a further thread costs more than it brings.
const MIN_ENTRIES: usize = 8192;

impl<T: Scalar> TridiagonalKernels<T> for Cpu {
    fn tridiagonal_algorithms(&self) -> &'static [Algorithm] {
        &HOST_ALGORITHMS
    }

    fn tridiagonal_choice(&self, problem: &BatchProblem) -> Result<Algorithm, LinalgError> {
        host_choice(problem)
    }

    fn tridiagonal_work_bytes(&self, problem: &BatchProblem) -> Result<u64, LinalgError> {
        if host_choice(problem)? != Algorithm::Thomas {
            return Ok(bytes_by_line::<T>(problem, self.threads()));
        }
        let Some([array_len, _]) = problem.lines.required_len()? else { return Ok(0) };
        if array_len > MOST_PLANNED {
            return Ok(u64::MAX);
        }
        // No entry is read where there is no room to work in.
        let nothing: *mut T = std::ptr::null_mut();
        let batch = Batch::of_pointers(problem, nothing, nothing, Source::Arrays([nothing; 3]));
        let mut len = 0;
        plan_panels(self, &batch, false, &mut |values| {
            len = values;
            Ok(None)
        })?;
        Ok((len * size_of::<T>()) as u64)
    }

    fn tridiagonal_solve(
        &self,
        problem: &BatchProblem,
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
    plan_panels(cpu, batch, is_factored, &mut |len: usize| {
        if scratch.as_ref().is_none_or(|scratch| scratch.len() < len) {
            *scratch = Some(Buffer::zeros(cpu, len)?);
        }
        Ok(scratch.as_mut().map(|scratch| scratch.as_mut_slice().as_mut_ptr()))
    })
}

/// Plans the panels, allocates workspace, and solves.
fn plan_panels<T: Scalar>(
    cpu: &Cpu,
    batch: &Batch<'_, T>,
    is_factored: bool,
    memory: MemoryOf<'_, T>,
) -> Result<(u64, u64), LinalgError> {
    if TypeId::of::<T>() == TypeId::of::<f64>() {
        let batch = as_type::<T, f64>(batch);
        plan::solve_f64(cpu, batch, is_factored, &mut |len| Ok(memory(len)?.map(<*mut T>::cast)))
    } else {
        let batch = as_type::<T, f32>(batch);
        plan::solve_f32(cpu, batch, is_factored, &mut |len| Ok(memory(len)?.map(<*mut T>::cast)))
    }
}

/// The batch by the name of its type.
fn as_type<'b, 'a, T: Scalar, S: Scalar>(batch: &'b Batch<'a, T>) -> &'b Batch<'a, S> {
    assert!(TypeId::of::<T>() == TypeId::of::<S>(), "scalars are f32 or f64");
    // SAFETY: both types are the same.
    unsafe { &*std::ptr::from_ref(batch).cast() }
}
