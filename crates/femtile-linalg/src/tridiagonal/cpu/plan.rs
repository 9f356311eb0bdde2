//! How a batch is cut into panels, and which vectors and which elimination solve it.

use std::sync::atomic::Ordering;

use femtile_device::Cpu;
use femtile_device::cpu::SimdLevel;

use super::sweep::{Batch, Elimination, LINE, Plan, solve_panels};
use super::vector::{Lanes, Vector};
use crate::LinalgError;
use crate::tridiagonal::factored::cpu::Factored;
use crate::tridiagonal::periodic::cpu::Periodic;
use crate::tridiagonal::pivoted::cpu::Pivoted;
use crate::tridiagonal::thomas::cpu::Thomas;
use crate::tridiagonal::{Ends, Stability};

/// Gives room for so many values.
type Memory<'m, T> = &'m mut dyn FnMut(usize) -> Result<*mut T, LinalgError>;

/// Most bytes of a row of a panel where lines stand side by side.
const WIDE: usize = 16 * LINE;

/// Bytes that may be kept between the sweeps before panels become narrower.
const KEPT: usize = 256 << 10;

/// Rows so many bytes apart, or a multiple of it, share a few sets of the first-level cache: few may be asked for.
const CONFLICT: usize = 4096;

/// Bytes of a block of rows that is staged.
const BLOCK: usize = 4096;

/// [`solve`] for f32, compiled here and in no crate that calls it.
pub(super) fn solve_f32(
    cpu: &Cpu,
    batch: &Batch<'_, f32>,
    is_factored: bool,
    memory: Memory<'_, f32>,
) -> Result<(u64, u64), LinalgError> {
    solve(cpu, batch, is_factored, memory)
}

/// [`solve`] for f64, compiled here and in no crate that calls it.
pub(super) fn solve_f64(
    cpu: &Cpu,
    batch: &Batch<'_, f64>,
    is_factored: bool,
    memory: Memory<'_, f64>,
) -> Result<(u64, u64), LinalgError> {
    solve(cpu, batch, is_factored, memory)
}

/// Solves a batch; the number of lines that failed, and the least `line * length + row` among them.
fn solve<T: Lanes>(
    cpu: &Cpu,
    batch: &Batch<'_, T>,
    is_factored: bool,
    memory: Memory<'_, T>,
) -> Result<(u64, u64), LinalgError> {
    match cpu.simd() {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => solve_with::<T, T::Avx2>(cpu, batch, is_factored, memory)?,
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => solve_with::<T, T::Avx512>(cpu, batch, is_factored, memory)?,
        _ => solve_with::<T, T::Plain>(cpu, batch, is_factored, memory)?,
    }
    Ok((batch.n_failed.load(Ordering::Relaxed), batch.first_failed.load(Ordering::Relaxed)))
}

/// By the kind of system.
fn solve_with<T: Lanes, V: Vector<T>>(
    cpu: &Cpu,
    batch: &Batch<'_, T>,
    is_factored: bool,
    memory: Memory<'_, T>,
) -> Result<(), LinalgError> {
    match (batch.problem.ends, batch.problem.stability) {
        _ if is_factored => run::<T, V, Factored<V, T, 4>, 4>(cpu, batch, memory),
        (Ends::Periodic, _) => run::<T, V, Periodic<V, T, 2>, 2>(cpu, batch, memory),
        (_, Stability::PartialPivoting) => run::<T, V, Pivoted<V, T, 2>, 2>(cpu, batch, memory),
        (_, Stability::Unpivoted) => run::<T, V, Thomas<V, T, 4>, 4>(cpu, batch, memory),
    }
}

/// Whether lines stand side by side, so that rows of neighbours are contiguous.
fn has_neighbours<T>(batch: &Batch<'_, T>) -> bool {
    batch.problem.lines.axes[2].stride == 1 && batch.problem.lines.stride != 1
}

fn run<T: Lanes, V: Vector<T>, E: Elimination<T, V, W>, const W: usize>(
    cpu: &Cpu,
    batch: &Batch<'_, T>,
    memory: Memory<'_, T>,
) -> Result<(), LinalgError> {
    let (lines, lanes) = (&batch.problem.lines, W * V::LANES);
    let row = lanes * size_of::<T>();
    let is_even = has_neighbours(batch)
        && row.is_multiple_of(LINE)
        && (lines.stride * size_of::<T>()).is_multiple_of(LINE);
    let head = if is_even { batch.u.align_offset(LINE).min(lines.n_lines()) } else { 0 };
    let block = (BLOCK / row).clamp(16, 64);
    // Wide panels read longer pieces of memory, as long as what is kept of them stays in the second-level cache.
    let most = (KEPT / (E::SLOTS * lines.length.max(1) * row)).clamp(1, WIDE / row.min(WIDE));
    let groups = if has_neighbours(batch) { most.min(lines.n_lines().div_ceil(lanes)).max(1) } else { 1 };
    let is_conflicting = (lines.stride * size_of::<T>()).is_multiple_of(CONFLICT);
    let direct_block = if is_conflicting { 2 } else { 8 };
    let plan = Plan { head, lanes, groups, block, direct_block, is_streamed: !batch.is_in_place() };
    solve_panels::<T, V, E, W>(cpu, batch, &plan, memory)
}
