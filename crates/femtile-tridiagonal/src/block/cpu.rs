//! A SIMD lane a system, threads over groups of systems.
//!
//! Blocks are transposed into the lanes a few rows at a time, so memory is read once; $C^*$ and $d^*$ of a group stay
//! in the second-level cache.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;
use femtile_device::cpu::{SharedMut, SimdLevel};
use femtile_device::{Buffer, Cpu};
use femtile_linalg::LinalgError;
use pulp::{Simd, WithSimd};

use super::choosing::Choosing;
use super::elimination::{Before, eliminate_row};
use super::reference::{BlockSystem, host_choice, note, slices, solve_each};
use super::transpose::{MAX_LANES, gather, scatter};
use super::{BlockBands, BlockOrder, BlockProblem, BlockShape, BlockTridiagonalKernels};
use crate::{Algorithm, Stability, Work};

/// Entries of a line of the caches.
const LINE: usize = 16;
/// Entries of a band and a system that are transposed at a time: long enough to take whole lines of the caches.
const RUN: usize = 64;

impl<T: OnCpu> BlockTridiagonalKernels<T> for Cpu {
    fn block_choice(&self, problem: &BlockProblem) -> Result<Algorithm, LinalgError> {
        host_choice(problem, "a CPU")
    }

    fn block_solve(
        &self,
        problem: &BlockProblem,
        u: &mut Buffer<T, Self>,
        bands: BlockBands<'_, T, Self>,
        d: Option<&Buffer<T, Self>>,
        work: &mut Work<T, Self>,
    ) -> Result<(), LinalgError> {
        let algorithm = host_choice(problem, "a CPU")?;
        if !problem.check(u, bands, d, work)? {
            return Ok(());
        }
        if algorithm == Algorithm::Pcr {
            solve_each(problem, u, bands, d, work);
            return Ok(());
        }
        let needed = self.threads() * scratch_len(problem.shape);
        if work.scratch.as_ref().is_none_or(|scratch| scratch.len() < needed) {
            work.scratch = Some(Buffer::zeros(self, needed)?);
        }
        let Some(scratch) = work.scratch.as_mut() else { return Ok(()) };
        let failures = Mutex::new(work.status.as_mut_slice());
        let batch = Batch {
            problem,
            bands: slices(bands),
            right: d.map(Buffer::as_slice),
            u: SharedMut::new(u.as_mut_slice()),
            scratch: SharedMut::new(scratch.as_mut_slice()),
            status: failures,
        };
        T::solve_on(self, &batch);
        Ok(())
    }
}

/// Numbers for which everything is compiled in this crate, once, and not where it is used.
pub trait OnCpu: Choosing {
    /// Solves a batch with the vectors of a device.
    fn solve_on(cpu: &Cpu, batch: &Batch<'_, Self>);
}

macro_rules! on_cpu {
    ($($t:ident),*) => {
        $(impl OnCpu for $t {
            fn solve_on(cpu: &Cpu, batch: &Batch<'_, Self>) {
                batch.dispatch(cpu);
            }
        })*
    };
}

on_cpu!(f32, f64);

/// Rows of a chunk that is transposed at a time.
fn chunk_rows(block: usize) -> usize {
    (RUN / (block * block)).max(1)
}

/// Entries that one thread needs for $C^*$, $d^*$ and a chunk of A and B, for any width of vectors.
fn scratch_len(shape: BlockShape) -> usize {
    let (m, n) = (shape.block, shape.n_rows);
    (n * (m * m + m) + 2 * chunk_rows(m) * m * m) * MAX_LANES + LINE
}

/// Everything that threads share.
#[derive(Debug)]
pub struct Batch<'a, T> {
    problem: &'a BlockProblem,
    bands: [&'a [T]; 3],
    /// None where the right sides stand in `u`.
    right: Option<&'a [T]>,
    u: SharedMut<'a, T>,
    scratch: SharedMut<'a, T>,
    status: Mutex<&'a mut [u64]>,
}

impl<T: Choosing> Batch<'_, T> {
    fn dispatch(&self, cpu: &Cpu) {
        match cpu.simd() {
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx2 if let Some(simd) = pulp::x86::V3::try_new() => self.solve(cpu, simd),
            #[cfg(target_arch = "x86_64")]
            SimdLevel::Avx512 if let Some(simd) = pulp::x86::V4::try_new() => self.solve(cpu, simd),
            _ => self.solve_by_loops(cpu),
        }
    }

    fn solve<S: Simd>(&self, cpu: &Cpu, simd: S) {
        match self.problem.shape.block {
            2 => self.share_out::<S, 2>(cpu, simd),
            3 => self.share_out::<S, 3>(cpu, simd),
            4 => self.share_out::<S, 4>(cpu, simd),
            5 => self.share_out::<S, 5>(cpu, simd),
            6 => self.share_out::<S, 6>(cpu, simd),
            7 => self.share_out::<S, 7>(cpu, simd),
            8 => self.share_out::<S, 8>(cpu, simd),
            9 => self.share_out::<S, 9>(cpu, simd),
            _ => self.share_out::<S, 10>(cpu, simd),
        }
    }

    /// Without vectors there is nothing to gain from lanes.
    fn solve_by_loops(&self, cpu: &Cpu) {
        cpu.for_ranges(self.problem.shape.n_systems, 1, |systems| {
            systems.for_each(|number| self.solve_apart(number, &self.system(number)));
        });
    }

    fn share_out<S: Simd, const M: usize>(&self, cpu: &Cpu, simd: S) {
        let shape = self.problem.shape;
        let n_groups = shape.n_systems.div_ceil(T::lanes::<S>());
        let (n_threads, len) = (cpu.threads(), scratch_len(shape));
        cpu.for_threads(|thread| {
            // SAFETY: each thread has a share of its own.
            let scratch = unsafe { self.scratch.range(thread * len..(thread + 1) * len) };
            let begin = scratch.as_ptr().align_offset(LINE * size_of::<T>()).min(LINE);
            for group in n_groups * thread / n_threads..n_groups * (thread + 1) / n_threads {
                let workspace = &mut scratch[begin..];
                simd.vectorize(Group::<T, M> { batch: self, group, workspace });
            }
        });
    }

    #[inline(always)]
    fn solve_group<S: Simd, const M: usize>(&self, simd: S, group: usize, scratch: &mut [T]) {
        let (shape, lanes) = (self.problem.shape, T::lanes::<S>());
        let (n, systems) = (shape.n_rows, group * lanes..((group + 1) * lanes).min(shape.n_systems));
        let mut workspace = Workspace::<T::Vector<S>, M>::new(n, scratch);
        self.stage(workspace.d.as_flattened_mut(), &systems, 0..n, M, |run| self.right(run));
        let mut flag = T::splat(simd, T::ZERO);
        for begin in (0..n).step_by(chunk_rows(M)) {
            let rows = begin..(begin + chunk_rows(M)).min(n);
            let c = workspace.c[rows.clone()].as_flattened_mut().as_flattened_mut();
            for (to, from) in [&mut *workspace.a, &mut *workspace.b, c].into_iter().zip(self.bands) {
                self.stage(to, &systems, rows.clone(), M * M, |run| &from[run]);
            }
            for row in rows {
                flag = workspace.eliminate_row::<S, T>(simd, row, row - begin, self.problem.stability, flag);
            }
        }
        workspace.substitute_back::<S, T>(simd);
        let flags: &[T] = bytemuck::cast_slice(std::slice::from_ref(&flag));
        let failed = |lane: usize| flags[lane] != T::ZERO;
        let apart: Vec<BlockSystem<T>> = (0..systems.len())
            .filter(|&lane| failed(lane))
            .map(|lane| self.system(systems.start + lane))
            .collect();
        self.unstage(workspace.d.as_flattened(), &systems);
        let which = systems.clone().filter(|system| failed(system - systems.start));
        which.zip(apart).for_each(|(number, system)| self.solve_apart(number, &system));
    }

    /// Transposes a run of entries of each system into the lanes; lanes without a system repeat the last one.
    #[inline(always)]
    fn stage<'s, V: Pod>(
        &self,
        to: &mut [V],
        systems: &Range<usize>,
        rows: Range<usize>,
        width: usize,
        from: impl Fn(Range<usize>) -> &'s [T],
    ) where
        T: 's,
    {
        let shape = self.problem.shape;
        let mut rows_left = rows;
        let mut place = 0;
        while !rows_left.is_empty() {
            let n_rows = if shape.order == BlockOrder::SystemMajor { rows_left.len() } else { 1 };
            let begin = |system: usize| shape.place(rows_left.start, system) * width;
            let run_of = |system: usize| from(begin(system)..begin(system) + n_rows * width);
            let mut runs = [run_of(systems.start); MAX_LANES];
            for lane in 1..size_of::<V>() / size_of::<T>() {
                runs[lane] = if lane < systems.len() { run_of(systems.start + lane) } else { runs[lane - 1] };
            }
            let to = &mut to[place..place + n_rows * width];
            gather(to, &runs, n_rows * shape.row_stride() * width);
            place += n_rows * width;
            rows_left.start += n_rows;
        }
    }

    /// Writes the solution of each system, undoing what [`Batch::stage`] does.
    #[inline(always)]
    fn unstage<V: Pod>(&self, from: &[V], systems: &Range<usize>) {
        let shape = self.problem.shape;
        let (m, mut rows) = (shape.block, 0..shape.n_rows);
        while !rows.is_empty() {
            let n_rows = if shape.order == BlockOrder::SystemMajor { rows.len() } else { 1 };
            let mut runs: [&mut [T]; MAX_LANES] = std::array::from_fn(|_| &mut [][..]);
            for (run, system) in runs.iter_mut().zip(systems.clone()) {
                let begin = shape.place(rows.start, system) * m;
                // SAFETY: no other thread has this system, and runs of two systems do not meet.
                *run = unsafe { self.u.range(begin..begin + n_rows * m) };
            }
            scatter(&from[rows.start * m..(rows.start + n_rows) * m], &mut runs);
            rows.start += n_rows;
        }
    }

    /// Right sides at a place of their array, of a system of the calling thread.
    #[inline(always)]
    fn right(&self, run: Range<usize>) -> &[T] {
        match self.right {
            Some(right) => &right[run],
            // SAFETY: no other thread has this system, and its solution is written after its right side was read.
            None => unsafe { self.u.range(run) },
        }
    }

    /// A copy of a system, for which vectors found a pivot that fails.
    fn system(&self, system: usize) -> BlockSystem<T> {
        BlockSystem::of(
            &self.problem.shape,
            self.bands,
            &|place| self.right(place..place + self.problem.shape.block),
            system,
        )
    }

    /// Solves a system by plain loops, which find the row.
    fn solve_apart(&self, number: usize, system: &BlockSystem<T>) {
        let shape = self.problem.shape;
        let values = system.thomas(self.problem.stability).unwrap_or_else(|row| {
            note(&mut self.status.lock().unwrap_or_else(PoisonError::into_inner), &shape, number, row);
            vec![T::from_f64(f64::NAN); shape.n_rows * shape.block]
        });
        for (row, values) in values.chunks_exact(shape.block).enumerate() {
            let place = shape.place(row, number) * shape.block;
            // SAFETY: no other thread has this system.
            unsafe { self.u.range(place..place + shape.block) }.copy_from_slice(values);
        }
    }
}

/// One group, as pulp wants work that is compiled for some width of vectors.
struct Group<'a, 'b, T, const M: usize> {
    batch: &'a Batch<'b, T>,
    group: usize,
    workspace: &'a mut [T],
}

impl<T: Choosing, const M: usize> WithSimd for Group<'_, '_, T, M> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        self.batch.solve_group::<S, M>(simd, self.group, self.workspace);
    }
}

/// Where a group of systems is solved: $C^*$ and $d^*$ of all rows, A and B of a chunk.
struct Workspace<'a, V, const M: usize> {
    c: &'a mut [[[V; M]; M]],
    d: &'a mut [[V; M]],
    a: &'a mut [V],
    b: &'a mut [V],
}

impl<'a, V: Pod, const M: usize> Workspace<'a, V, M> {
    #[inline(always)]
    fn new<T: Pod>(n_rows: usize, scratch: &'a mut [T]) -> Self {
        let n_chunk = chunk_rows(M) * M * M;
        let n_vectors = n_rows * (M * M + M) + 2 * n_chunk;
        let n_entries = n_vectors * (size_of::<V>() / size_of::<T>());
        let vectors: &mut [V] = bytemuck::cast_slice_mut(&mut scratch[..n_entries]);
        let (c, rest) = vectors.split_at_mut(n_rows * M * M);
        let (d, rest) = rest.split_at_mut(n_rows * M);
        let (a, b) = rest.split_at_mut(n_chunk);
        let c = c.as_chunks_mut::<M>().0.as_chunks_mut::<M>().0;
        Self { c, d: d.as_chunks_mut::<M>().0, a, b }
    }

    /// Eliminates row `row`, whose A and B are number `staged` of the chunk.
    #[inline(always)]
    fn eliminate_row<S: Simd, T: Choosing<Vector<S> = V>>(
        &mut self,
        simd: S,
        row: usize,
        staged: usize,
        stability: Stability,
        flag: V,
    ) -> V {
        let is_last = row + 1 == self.c.len();
        let (a, b) = (&as_blocks::<V, M>(self.a)[staged], &as_blocks::<V, M>(self.b)[staged]);
        let (c_before, c) = self.c.split_at_mut(row);
        let (d_before, d) = self.d.split_at_mut(row);
        let before: Option<Before<'_, T, S, M>> = match (c_before.last(), d_before.last()) {
            (Some(c), Some(d)) => Some((a, c, d)),
            _ => None,
        };
        let c = if is_last { None } else { c.first_mut() };
        eliminate_row::<T, S, M>(simd, before, b, c, &mut d[0], stability, flag)
    }

    /// $u_i = d_i^* - C_i^* u_{i+1}$, from the last row but one to the first.
    #[inline(always)]
    fn substitute_back<S: Simd, T: Choosing<Vector<S> = V>>(&mut self, simd: S) {
        for row in (0..self.c.len().saturating_sub(1)).rev() {
            let (c, (u, next)) = (&self.c[row], self.d.split_at_mut(row + 1));
            let (mut values, next) = (u[row], &next[0]);
            for k in 0..M {
                for i in 0..M {
                    values[i] = T::minus_product(simd, values[i], c[i][k], next[k]);
                }
            }
            u[row] = values;
        }
    }
}

#[inline(always)]
fn as_blocks<V, const M: usize>(entries: &[V]) -> &[[[V; M]; M]] {
    entries.as_chunks::<M>().0.as_chunks::<M>().0
}
