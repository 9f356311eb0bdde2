//! Assembly on the CPU: blocks of rows in parallel, chunks of cells in SIMD lanes.

mod block;
mod columns;
mod drift;

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use femtile_device::cpu::{SharedMut, zeroed_vec};
use femtile_device::{Buffer, BufferMut, Cpu, Scalar, parallel};
use femtile_mesh::Mesh;
use femtile_sparse::EntryPositions;
use femtile_sparse::csr::{Csr, HostOffsets};
use rayon::prelude::*;

use self::block::{BlockTask, dispatch};
use self::drift::CellDrift;
use super::element::{Corners, Elements};
use super::kernels::{Assembled, AssemblyKernels, AssemblyProblem, DeviceState};
use super::sparsity::{Sparsity, block_shift, pattern};
use crate::FemError;
use crate::assembly::row_blocks::RowBlocks;
use crate::forms::{CHUNK, ChunkCoefficients, ChunkScratch, State};

impl<T: Scalar> AssemblyKernels<T> for Cpu {
    type RefillData = RefillData;

    fn assemble_system(&self, problem: &AssemblyProblem<'_>) -> Result<Assembled<T, Self>, FemError> {
        let mesh = problem.coefficients.mesh;
        self.install(|| {
            let (blocks, pattern) = pattern(mesh)?;
            let plan = Plan::new(blocks, Arc::new(pattern), None);
            let mut values: Vec<T> = zeroed_vec(plan.pattern.columns.len());
            let mut rhs: Vec<f64> = zeroed_vec(mesh.n_nodes());
            plan.fill(self, (problem, State::default()), &mut values, &mut rhs)?;
            let Sparsity { offsets, columns } = Arc::unwrap_or_clone(plan.pattern);
            let matrix = Csr::from_parts(self, mesh.n_nodes(), offsets, columns, values)?;
            Ok(Assembled { matrix, rhs })
        })
    }

    fn prepare_refill(
        &self,
        mesh: &Mesh,
        pattern: &Arc<Sparsity>,
        places: EntryPositions,
    ) -> Result<RefillData, FemError> {
        let blocks = self.install(|| RowBlocks::new(mesh, block_shift(mesh.n_nodes())));
        let scattered = places.lanes().is_some().then_some(places);
        let rhs = vec![0.0; mesh.n_nodes()];
        // Columns and row starts; nodes of cells and cell numbers of blocks; points.
        let words = pattern.columns.len() + mesh.n_nodes() + mesh.cells.len() + mesh.n_cells();
        let bytes = 4 * words + 24 * mesh.n_nodes();
        Ok(RefillData { plan: Plan::new(blocks, pattern.clone(), scattered), rhs, bytes })
    }

    fn queue<V: Scalar>(
        &self,
        refill_data: &mut RefillData,
        (problem, state): (&AssemblyProblem<'_>, DeviceState<'_, Self>),
        values: &mut BufferMut<'_, V, Self>,
        rhs: &mut Buffer<T, Self>,
    ) -> Result<(), FemError> {
        let at = (problem, state.on_host());
        self.install(|| refill_data.fill(self, at, values.as_mut_slice()))?;
        rhs.as_mut_slice().iter_mut().zip(&refill_data.rhs).for_each(|(out, &b)| *out = T::from_f64(b));
        Ok(())
    }

    fn refill_bytes(&self, refill_data: &RefillData) -> usize {
        refill_data.bytes
    }

    fn unrounded(&self, refill_data: &RefillData, _: &Buffer<T, Self>) -> Result<Vec<f64>, FemError> {
        Ok(refill_data.rhs.clone())
    }
}

/// Data kept on the host between refills.
pub struct RefillData {
    plan: Plan,
    pub(super) rhs: Vec<f64>,
    bytes: usize,
}

impl RefillData {
    pub(super) fn fill<V: Scalar>(
        &mut self,
        device: &Cpu,
        (problem, state): (&AssemblyProblem<'_>, State<'_>),
        values: &mut [V],
    ) -> Result<(), FemError> {
        self.rhs.fill(0.0);
        self.plan.fill(device, (problem, state), values, &mut self.rhs)
    }
}

/// Distribution of rows to blocks, and the pattern.
struct Plan {
    blocks: RowBlocks,
    pattern: Arc<Sparsity>,
    /// Places of the values, if not in the order of the pattern.
    places: Option<EntryPositions>,
    /// Start of each row among the values of its block, and the end of the last.
    starts: Vec<Vec<u32>>,
    pool: Mutex<Vec<Scratch>>,
}

/// Destination of the values of one block of rows.
enum Out<'a, V> {
    /// Consecutive rows.
    Rows(&'a mut [V]),
    /// Places among all values.
    Places(&'a SharedMut<'a, V>, &'a EntryPositions),
}

/// Output of one block of rows.
struct BlockRows<'a, V> {
    block: usize,
    starts: &'a [u32],
    /// The columns of the block and all that follow.
    columns: &'a [u32],
    values: Out<'a, V>,
    rhs: &'a mut [f64],
}

/// Workspace of one thread for a block.
struct Scratch {
    cells: Vec<u32>,
    values: Vec<f64>,
    diagonal: Vec<f64>,
    corners: Box<Corners>,
    elements: Box<Elements>,
    coefficients: ChunkCoefficients,
    evaluation: ChunkScratch,
    drift: Vec<CellDrift>,
}

impl Plan {
    fn new(blocks: RowBlocks, pattern: Arc<Sparsity>, places: Option<EntryPositions>) -> Self {
        let starts = |block| local_starts(&pattern.offsets, &blocks.rows(block));
        let starts = parallel::map(blocks.n_blocks(), 1, starts);
        Self { blocks, pattern, places, starts, pool: Mutex::default() }
    }

    fn fill<V: Scalar>(
        &self,
        device: &Cpu,
        at: (&AssemblyProblem<'_>, State<'_>),
        values: &mut [V],
        rhs: &mut [f64],
    ) -> Result<(), FemError> {
        let shared;
        let out = match &self.places {
            None => Out::Rows(values),
            Some(places) => {
                shared = SharedMut::new(values);
                Out::Places(&shared, places)
            }
        };
        let work = self.split(out, rhs);
        match at.0.coefficients.mesh.kind.n_nodes() {
            3 => self.work::<V, 3>(device, at, work),
            _ => self.work::<V, 4>(device, at, work),
        }
    }

    /// Splits the output arrays by blocks.
    fn split<'a, V>(&'a self, mut out: Out<'a, V>, mut rhs: &'a mut [f64]) -> Vec<BlockRows<'a, V>> {
        let part = |block: usize| {
            let rows = self.blocks.rows(block);
            let begin = self.pattern.offsets.get(rows.start);
            let n_entries = self.pattern.offsets.get(rows.end) - begin;
            BlockRows {
                block,
                starts: &self.starts[block],
                columns: &self.pattern.columns[begin..],
                values: match &mut out {
                    Out::Rows(values) => Out::Rows(take(values, n_entries)),
                    Out::Places(values, places) => Out::Places(values, places),
                },
                rhs: take(&mut rhs, rows.len()),
            }
        };
        (0..self.blocks.n_blocks()).map(part).collect()
    }

    fn work<V: Scalar, const N: usize>(
        &self,
        device: &Cpu,
        (problem, state): (&AssemblyProblem<'_>, State<'_>),
        work: Vec<BlockRows<'_, V>>,
    ) -> Result<(), FemError> {
        let facets = facets_by_block(problem, &self.blocks);
        let (n_done, n_blocks) = (AtomicUsize::new(0), self.blocks.n_blocks());
        let is_interrupted = AtomicBool::new(false);
        let failures: Vec<FemError> = work
            .into_par_iter()
            .filter_map(|rows| {
                if is_interrupted.load(Ordering::Relaxed) {
                    return None;
                }
                let taken = self.pool.lock().ok().and_then(|mut pool| pool.pop());
                let mut scratch = taken.unwrap_or_else(|| Scratch::new(problem));
                scratch.coefficients = problem.coefficients.start_chunk();
                self.blocks.cells_of(rows.block, &mut scratch.cells);
                let facets = &facets[rows.block];
                let task = BlockTask::<V, N> {
                    problem,
                    state,
                    rows: self.blocks.rows(rows.block),
                    facets,
                    out: rows,
                    scratch: &mut scratch,
                };
                let result = dispatch(device.simd(), task);
                if let Ok(mut pool) = self.pool.lock() {
                    pool.push(scratch);
                }
                let n_done = n_done.fetch_add(1, Ordering::Relaxed) + 1;
                if problem.go_on(n_done as f64 / n_blocks as f64).is_err() {
                    is_interrupted.store(true, Ordering::Relaxed);
                }
                result.err()
            })
            .collect();
        if is_interrupted.load(Ordering::Relaxed) {
            return Err(FemError::Interrupted);
        }
        // The set of failing blocks does not depend on the order of work, so neither does the smallest cell among them.
        match failures.into_iter().min_by_key(FemError::cell) {
            Some(first) => Err(first),
            None => Ok(()),
        }
    }
}

fn local_starts(offsets: &HostOffsets, rows: &Range<usize>) -> Vec<u32> {
    let base = offsets.get(rows.start);
    (rows.start..=rows.end).map(|row| (offsets.get(row) - base) as u32).collect()
}

/// Splits at most `n` values off the front.
fn take<'a, V>(values: &mut &'a mut [V], n: usize) -> &'a mut [V] {
    let whole = std::mem::take(values);
    let n = n.min(whole.len());
    let (front, rest) = whole.split_at_mut(n);
    *values = rest;
    front
}

/// Returns the facet terms of each block, ascending.
fn facets_by_block(problem: &AssemblyProblem<'_>, blocks: &RowBlocks) -> Vec<Vec<u32>> {
    let mut facets = vec![Vec::new(); blocks.n_blocks()];
    for (i, term) in problem.facet_terms.iter().enumerate() {
        let mut touched: Vec<usize> = term.matrix.dofs.iter().map(|&node| blocks.block_of(node)).collect();
        touched.sort_unstable();
        for group in touched.chunk_by(|a, b| a == b) {
            facets[group[0]].push(i as u32);
        }
    }
    facets
}

impl Scratch {
    fn new(problem: &AssemblyProblem<'_>) -> Self {
        Self {
            cells: Vec::new(),
            values: Vec::new(),
            diagonal: Vec::new(),
            corners: Box::new(Corners([[0.0; CHUNK]; 12])),
            elements: Elements::new(),
            coefficients: problem.coefficients.start_chunk(),
            evaluation: ChunkScratch::default(),
            drift: Vec::new(),
        }
    }
}
