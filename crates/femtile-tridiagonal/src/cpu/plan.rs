//! The division of a batch into panels, with the vector width and the elimination of each.

use std::ops::Range;

use femtile_device::Cpu;
use femtile_device::cpu::SimdLevel;

use super::LINE;
use super::sweep::{Batch, CHUNK, Elimination, Source};
use super::worker::{Shares, solve_panels};
use crate::factored::cpu::Factored;
use crate::periodic::cpu::Periodic;
use crate::pivoted::cpu::Pivoted;
use crate::thomas::cpu::Thomas;
use crate::{Ends, Stability};
use femtile_device::cpu::vector::{Lanes, Vector};
use femtile_linalg::LinalgError;

/// Provides workspace for a number of values; without it nothing is solved.
pub(super) type MemoryOf<'m, T> = &'m mut dyn FnMut(usize) -> Result<Option<*mut T>, LinalgError>;

/// Most bytes of a row of a panel where lines stand side by side: long pieces of memory are read ahead, and each page
/// of memory is visited few times.
const WIDE: usize = 8192;

/// Least bytes of such a row: shorter pieces of memory are read at a lower rate than what is kept beyond the second
/// cache.
const NARROW: usize = 2048;

/// Bytes that are kept between the sweeps before such panels become narrower; the size of a second cache.
const KEPT: usize = 2 << 20;

/// Bytes that a panel in place moves before its right sides have left the second cache when the solution is written.
const NEAR: usize = 1 << 20;

/// Bytes of right sides from which on their place is not in a cache when a batch is solved.
const FAR: usize = 8 << 20;

/// Vectors of a panel whose lines are contiguous: enough that divisions overlap.
const VECTORS: usize = CHUNK;

/// Bytes of such a panel, of the next one and of what is kept before panels become narrower.
const STAGED: usize = 1 << 20;

/// Bytes of a block of rows that is staged.
const BLOCK: usize = 4096;

/// [`solve`] for f32, compiled here and in no crate that calls it.
pub(super) fn solve_f32(
    cpu: &Cpu,
    batch: &Batch<'_, f32>,
    is_factored: bool,
    memory: MemoryOf<'_, f32>,
) -> Result<(u64, u64), LinalgError> {
    solve(cpu, batch, is_factored, memory)
}

/// [`solve`] for f64, compiled here and in no crate that calls it.
pub(super) fn solve_f64(
    cpu: &Cpu,
    batch: &Batch<'_, f64>,
    is_factored: bool,
    memory: MemoryOf<'_, f64>,
) -> Result<(u64, u64), LinalgError> {
    solve(cpu, batch, is_factored, memory)
}

/// Solves a batch; the number of lines that failed, and the least `line * length + row` among them.
fn solve<T: Lanes>(
    cpu: &Cpu,
    batch: &Batch<'_, T>,
    is_factored: bool,
    memory: MemoryOf<'_, T>,
) -> Result<(u64, u64), LinalgError> {
    match cpu.simd() {
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx2 => solve_with::<T, T::Avx2>(cpu, batch, is_factored, memory)?,
        #[cfg(target_arch = "x86_64")]
        SimdLevel::Avx512 => solve_with::<T, T::Avx512>(cpu, batch, is_factored, memory)?,
        _ => solve_with::<T, T::Plain>(cpu, batch, is_factored, memory)?,
    }
    Ok(batch.failures())
}

/// By the kind of system.
fn solve_with<T: Lanes, V: Vector<T>>(
    cpu: &Cpu,
    batch: &Batch<'_, T>,
    is_factored: bool,
    memory: MemoryOf<'_, T>,
) -> Result<(), LinalgError> {
    match (batch.problem.ends, batch.problem.stability) {
        _ if is_factored => run::<T, V, Factored>(cpu, batch, memory),
        (Ends::Periodic, _) => run::<T, V, Periodic>(cpu, batch, memory),
        (_, Stability::PartialPivoting) => run::<T, V, Pivoted>(cpu, batch, memory),
        (_, Stability::Unpivoted) => run::<T, V, Thomas>(cpu, batch, memory),
    }
}

fn run<T: Lanes, V: Vector<T>, E: Elimination<T, V>>(
    cpu: &Cpu,
    batch: &Batch<'_, T>,
    memory: MemoryOf<'_, T>,
) -> Result<(), LinalgError> {
    let plan = Plan::new::<T, V>(batch, E::SLOTS, cpu.threads());
    let shares = Shares::new::<T, V, E>(cpu, batch, &plan);
    if let Some(memory) = memory(shares.len::<T>())? {
        // SAFETY: the provider of workspace has checked the arrays of the batch, and its length is the one requested;
        // `solve` chooses the vectors of the device's level.
        unsafe { solve_panels::<T, V, E>(cpu, batch, &plan, (&shares, memory)) }
    }
    Ok(())
}

/// The division of a batch: runs of adjacent lines are cut into a head, pieces of whole vectors and a tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Plan {
    n_lines: usize,
    /// Lines of a run.
    run: usize,
    /// Lines of a run before its first whole piece, so that pieces begin at lines of the cache.
    head: usize,
    /// Lines of a run that come in whole pieces.
    body: usize,
    /// Lines of a piece, but for the last.
    width: usize,
    /// Most lanes of a panel.
    pub lanes: usize,
    /// Rows that are staged at once.
    pub block: usize,
    /// Whether solutions are written with non-temporal stores.
    pub is_streamed: bool,
}

impl Plan {
    fn new<T: Lanes, V: Vector<T>>(batch: &Batch<'_, T>, slots: usize, threads: usize) -> Self {
        let (lines, size) = (&batch.problem.lines, size_of::<T>());
        let inner = &lines.axes[2];
        let (n_lines, n) = (lines.n_lines(), lines.length.max(1));
        let is_direct = inner.stride == 1 && inner.band_stride <= 1 && lines.stride != 1;
        if !is_direct || inner.count < V::LANES {
            // Lines are gathered, or transposed: any of them make a panel. Few long lines need no memory for more.
            let vectors =
                if (4 + slots) * n * VECTORS * V::LANES * size > STAGED { VECTORS / 2 } else { VECTORS };
            let width = (vectors * V::LANES).min(n_lines.next_multiple_of(V::LANES));
            let block = (BLOCK / (width * size)).clamp(16, 64);
            let (run, body, lanes, is_streamed) = (n_lines, n_lines, width, !batch.is_in_place());
            return Self { n_lines, run, head: 0, body, width, lanes, block, is_streamed };
        }
        let run = inner.count;
        let is_even = (run * size).is_multiple_of(LINE) || run == n_lines;
        let most = (KEPT / (slots * n)).clamp(NARROW, WIDE) / size;
        // A further panel is worth it where many others are aligned then.
        let head = batch.u.align_offset(LINE);
        let head = if is_even && run >= 8 * most && head < run { head } else { 0 };
        let body = (run - head) / V::LANES * V::LANES;
        // As many pieces as threads at least, or a multiple of them, where one run is all there is.
        let pieces = body.div_ceil(most).max(1).next_multiple_of(threads.div_ceil(n_lines / run));
        // A head has fewer lines than a line of the cache has values, and must fit as well.
        let line = LINE / size;
        let width = body.div_ceil(pieces).next_multiple_of(line).max(line).max(V::LANES);
        let is_streamed = !batch.is_in_place() || is_past_cache::<T>(batch, slots, width);
        Self { n_lines, run, head, body, width, lanes: width, block: 1, is_streamed }
    }

    fn of_run(&self) -> [usize; 3] {
        let tail = self.run - self.head - self.body;
        [usize::from(self.head > 0), self.body.div_ceil(self.width), usize::from(tail > 0)]
    }

    /// Number of panels.
    pub fn n_panels(&self) -> usize {
        self.n_lines / self.run * self.of_run().iter().sum::<usize>()
    }

    /// The lines of a panel.
    pub fn panel(&self, number: usize) -> Range<usize> {
        let [n_heads, n_pieces, n_tails] = self.of_run();
        let each = n_heads + n_pieces + n_tails;
        let (first, piece) = (number / each * self.run, number % each);
        let (body, end) = (first + self.head, first + self.head + self.body);
        if piece < n_heads {
            first..body
        } else if piece < n_heads + n_pieces {
            let start = body + (piece - n_heads) * self.width;
            start..(start + self.width).min(end)
        } else {
            end..first + self.run
        }
    }
}

/// Returns whether right sides that rows of `width` lanes overwrite have left the second cache by then.
fn is_past_cache<T: Lanes>(batch: &Batch<'_, T>, slots: usize, width: usize) -> bool {
    let lines = &batch.problem.lines;
    let has_bands = matches!(batch.bands, Source::Arrays(_)) && lines.axes[2].band_stride == 1;
    let moved = (slots + if has_bands { 4 } else { 1 }) * lines.length * width * size_of::<T>();
    moved > NEAR && lines.n_lines() * lines.length * size_of::<T>() >= FAR
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::{Algorithm, BatchLayout, BatchProblem};
    use femtile_device::cpu::vector::Plain;

    /// The plan for arrays that begin at some address, which nobody reads.
    fn plan(shape: &[usize], axis: usize, address: usize, is_in_place: bool, threads: usize) -> Plan {
        let lines = BatchLayout::contiguous(shape).unwrap().lines(axis).unwrap();
        let (ends, stability) = (Ends::Open, Stability::Unpivoted);
        let problem = BatchProblem { lines, algorithm: Algorithm::Thomas, ends, stability };
        let u = std::ptr::without_provenance_mut::<f64>(address);
        let d = if is_in_place { u.cast_const() } else { std::ptr::null() };
        let batch = Batch {
            problem: &problem,
            u,
            d,
            bands: Source::Arrays([std::ptr::null(); 3]),
            n_failed: AtomicU64::new(0),
            first_failed: AtomicU64::new(u64::MAX),
        };
        Plan::new::<f64, Plain<f64, 4>>(&batch, 2, threads)
    }

    #[test]
    fn panels_hold_every_line_once_and_none_is_wider_than_its_memory() {
        let shapes: [&[usize]; 6] =
            [&[2, 3, 5, 8], &[70, 9], &[9, 3000], &[5, 7, 33], &[6, 6], &[4, 1030, 2]];
        for (shape, address) in shapes.iter().flat_map(|shape| (0..8).map(move |k| (shape, 1024 + 8 * k))) {
            for axis in 0..shape.len() {
                for is_in_place in [true, false] {
                    let plan = plan(shape, axis, address, is_in_place, 1 + address / 8 % 5);
                    let n_lines = shape.iter().product::<usize>() / shape[axis];
                    let mut next = 0;
                    for number in 0..plan.n_panels() {
                        let panel = plan.panel(number);
                        assert!(panel.start == next && panel.len().next_multiple_of(4) <= plan.lanes);
                        assert!(!panel.is_empty(), "{shape:?}, axis {axis}: {plan:?}");
                        next = panel.end;
                    }
                    assert_eq!(next, n_lines, "{shape:?}, axis {axis}: {plan:?}");
                }
            }
        }
    }

    #[test]
    fn few_lines_take_no_memory_for_lanes_that_stay_empty() {
        let lanes = |shape: &[usize]| plan(shape, shape.len() - 1, 1024, true, 2).lanes;
        assert_eq!([lanes(&[1000]), lanes(&[3, 1000]), lanes(&[5, 1000])], [4, 4, 8]);
        assert_eq!([lanes(&[16, 1000]), lanes(&[17, 1000])], [4 * VECTORS; 2]);
    }

    #[test]
    fn every_thread_has_a_panel_where_there_are_lines_enough() {
        let all = |shape: &[usize], threads| plan(shape, 0, 1024, true, threads).n_panels();
        assert_eq!(all(&[64, 256], 16), 16);
        assert_eq!(all(&[64, 65_536], 12), 72);
        assert_eq!(all(&[64, 16], 16), 2);
        assert_eq!(plan(&[300, 64, 256], 1, 1024, true, 16).n_panels(), 300);
    }
}
