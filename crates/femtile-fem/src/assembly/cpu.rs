//! Assembly on the CPU: blocks of rows in parallel, chunks of cells in SIMD lanes.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use femtile_device::cpu::{SharedMut, SimdLevel, zeroed_vec};
use femtile_device::{Buffer, Cpu, Scalar};
use femtile_linalg::sparse::Places;
use femtile_linalg::sparse::csr::{Csr, HostOffsets};
use femtile_mesh::Mesh;
use pulp::{NullaryFnOnce, Simd};
use rayon::prelude::*;

use super::element::{Corners, Elements, element_matrices};
use super::kernels::{Assembled, AssemblyKernels, Problem};
use super::sparsity::{Sparsity, block_shift, pattern};
use crate::FemError;
use crate::dofs::RowBlocks;
use crate::forms::{CHUNK, ChunkCoefficients, ChunkScratch, FACET_ENTRIES};

impl<T: Scalar> AssemblyKernels<T> for Cpu {
    type Kept = Kept;

    fn assemble_system(&self, problem: &Problem<'_>) -> Result<Assembled<T, Self>, FemError> {
        let mesh = problem.coefficients.mesh;
        self.install(|| {
            let (blocks, pattern) = pattern(mesh)?;
            let plan = Plan::new(blocks, Arc::new(pattern), None);
            let mut values: Vec<T> = zeroed_vec(plan.pattern.columns.len());
            let mut rhs: Vec<f64> = zeroed_vec(mesh.n_nodes());
            let mut reacts =
                vec![false; if problem.coefficients.reaction_varies() { mesh.n_nodes() } else { 0 }];
            plan.fill(self, problem, &mut values, &mut rhs, &mut reacts)?;
            if !reacts.contains(&true) {
                reacts.clear();
            }
            let Sparsity { offsets, columns } = Arc::unwrap_or_clone(plan.pattern);
            let matrix = Csr::from_parts(self, mesh.n_nodes(), offsets, columns, values)?;
            Ok(Assembled { matrix, rhs, reacts })
        })
    }

    fn keep(&self, mesh: &Mesh, pattern: &Arc<Sparsity>, places: Places) -> Result<Kept, FemError> {
        let blocks = self.install(|| RowBlocks::new(mesh, block_shift(mesh.n_nodes())));
        let scattered = places.lanes().is_some().then_some(places);
        let rhs = vec![0.0; mesh.n_nodes()];
        // Columns and where rows begin; the nodes of cells, and the numbers of the cells of blocks; points.
        let words = pattern.columns.len() + mesh.n_nodes() + mesh.cells.len() + mesh.n_cells();
        let bytes = 4 * words + 24 * mesh.n_nodes();
        Ok(Kept { plan: Plan::new(blocks, pattern.clone(), scattered), rhs, reacts: Vec::new(), bytes })
    }

    fn load(&self, _: &mut Kept, _: &Problem<'_>) -> Result<(), FemError> {
        Ok(())
    }

    fn queue<V: Scalar>(
        &self,
        kept: &mut Kept,
        problem: &Problem<'_>,
        values: &mut Buffer<V, Self>,
        rhs: &mut Buffer<T, Self>,
    ) -> Result<(), FemError> {
        self.install(|| kept.fill(self, problem, values.as_mut_slice()))?;
        rhs.as_mut_slice().iter_mut().zip(&kept.rhs).for_each(|(out, &b)| *out = T::from_f64(b));
        Ok(())
    }

    fn check<V: Scalar>(
        &self,
        kept: &mut Kept,
        _: &Problem<'_>,
        _: &mut Buffer<V, Self>,
        _: &mut Buffer<T, Self>,
    ) -> Result<Vec<bool>, FemError> {
        Ok(kept.reacts.clone())
    }

    fn kept_bytes(&self, kept: &Kept) -> usize {
        kept.bytes
    }

    fn unrounded(&self, kept: &Kept, _: &Buffer<T, Self>) -> Result<Vec<f64>, FemError> {
        Ok(kept.rhs.clone())
    }
}

/// What the host keeps between fillings.
pub struct Kept {
    plan: Plan,
    pub(super) rhs: Vec<f64>,
    /// As [`Assembled::reacts`].
    pub(super) reacts: Vec<bool>,
    bytes: usize,
}

impl Kept {
    pub(super) fn fill<V: Scalar>(
        &mut self,
        device: &Cpu,
        problem: &Problem<'_>,
        values: &mut [V],
    ) -> Result<(), FemError> {
        let n_reacts = if problem.coefficients.reaction_varies() { self.rhs.len() } else { 0 };
        self.rhs.fill(0.0);
        self.reacts.clear();
        self.reacts.resize(n_reacts, false);
        self.plan.fill(device, problem, values, &mut self.rhs, &mut self.reacts)
    }
}

/// Who works on which rows, and what that takes.
struct Plan {
    blocks: RowBlocks,
    pattern: Arc<Sparsity>,
    /// Where values lie, when not in the order of the pattern.
    places: Option<Places>,
    /// Where each row of each block begins among the values of the block, and the end of the last.
    starts: Vec<Vec<u32>>,
    pool: Mutex<Vec<Scratch>>,
}

/// Where the values of one block of rows go.
enum Out<'a, V> {
    /// One after another.
    Rows(&'a mut [V]),
    /// To their places among all values.
    Places(&'a SharedMut<'a, V>, &'a Places),
}

/// What one block of rows is to fill.
struct BlockRows<'a, V> {
    block: usize,
    starts: &'a [u32],
    /// The columns of the block and all that follow.
    columns: &'a [u32],
    values: Out<'a, V>,
    rhs: &'a mut [f64],
    reacts: &'a mut [bool],
}

/// Arrays that one thread needs while it works on a block.
struct Scratch {
    cells: Vec<u32>,
    values: Vec<f64>,
    diagonal: Vec<f64>,
    corners: Box<Corners>,
    elements: Box<Elements>,
    coefficients: ChunkCoefficients,
    evaluation: ChunkScratch,
}

impl Plan {
    fn new(blocks: RowBlocks, pattern: Arc<Sparsity>, places: Option<Places>) -> Self {
        let starts = |block| local_starts(&pattern.offsets, &blocks.rows(block));
        let starts = (0..blocks.n_blocks()).map(starts).collect();
        Self { blocks, pattern, places, starts, pool: Mutex::default() }
    }

    fn fill<V: Scalar>(
        &self,
        device: &Cpu,
        problem: &Problem<'_>,
        values: &mut [V],
        rhs: &mut [f64],
        reacts: &mut [bool],
    ) -> Result<(), FemError> {
        let shared;
        let out = match &self.places {
            None => Out::Rows(values),
            Some(places) => {
                shared = SharedMut::new(values);
                Out::Places(&shared, places)
            }
        };
        let work = self.split(out, rhs, reacts);
        match problem.coefficients.mesh.kind.n_nodes() {
            3 => self.work::<V, 3>(device, problem, work),
            _ => self.work::<V, 4>(device, problem, work),
        }
    }

    /// Cuts the output arrays into the parts of the blocks.
    fn split<'a, V>(
        &'a self,
        mut out: Out<'a, V>,
        mut rhs: &'a mut [f64],
        mut reacts: &'a mut [bool],
    ) -> Vec<BlockRows<'a, V>> {
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
                reacts: take(&mut reacts, rows.len()),
            }
        };
        (0..self.blocks.n_blocks()).map(part).collect()
    }

    fn work<V: Scalar, const N: usize>(
        &self,
        device: &Cpu,
        problem: &Problem<'_>,
        work: Vec<BlockRows<'_, V>>,
    ) -> Result<(), FemError> {
        let facets = facets_by_block(problem, &self.blocks);
        let (n_done, n_blocks) = (AtomicUsize::new(0), self.blocks.n_blocks());
        let failures: Vec<FemError> = work
            .into_par_iter()
            .filter_map(|rows| {
                let taken = self.pool.lock().ok().and_then(|mut pool| pool.pop());
                let mut scratch = taken.unwrap_or_else(|| Scratch::new(problem));
                scratch.coefficients = problem.coefficients.start_chunk();
                self.blocks.cells_of(rows.block, &mut scratch.cells);
                let facets = &facets[rows.block];
                let task = BlockTask::<V, N> {
                    problem,
                    rows: self.blocks.rows(rows.block),
                    facets,
                    out: rows,
                    scratch: &mut scratch,
                };
                let result = dispatch(device.simd(), task);
                if let Ok(mut pool) = self.pool.lock() {
                    pool.push(scratch);
                }
                (problem.progress)((n_done.fetch_add(1, Ordering::Relaxed) + 1) as f64 / n_blocks as f64);
                result.err()
            })
            .collect();
        // Which blocks fail does not depend on the order of work, so neither does the smallest cell among them.
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

/// Cuts at most `n` values off the front.
fn take<'a, V>(values: &mut &'a mut [V], n: usize) -> &'a mut [V] {
    let whole = std::mem::take(values);
    let n = n.min(whole.len());
    let (front, rest) = whole.split_at_mut(n);
    *values = rest;
    front
}

/// The facet terms of each block, ascending.
fn facets_by_block(problem: &Problem<'_>, blocks: &RowBlocks) -> Vec<Vec<u32>> {
    let mut facets = vec![Vec::new(); blocks.n_blocks()];
    for (i, term) in problem.facet_terms.iter().enumerate() {
        let mut touched = term.nodes.map(|node| blocks.block_of(node));
        touched.sort_unstable();
        for group in touched.chunk_by(|a, b| a == b) {
            facets[group[0]].push(i as u32);
        }
    }
    facets
}

impl Scratch {
    fn new(problem: &Problem<'_>) -> Self {
        Self {
            cells: Vec::new(),
            values: Vec::new(),
            diagonal: Vec::new(),
            corners: Box::new(Corners([[0.0; CHUNK]; 12])),
            elements: Elements::new(),
            coefficients: problem.coefficients.start_chunk(),
            evaluation: ChunkScratch::default(),
        }
    }
}

/// Columns looked at together.
const WINDOW: usize = 16;

/// Finds columns among a few.
trait FindColumn: Simd {
    /// One bit for each of the columns, set where it is the wanted one.
    fn matches(self, columns: &[u32; WINDOW], wanted: u32) -> u16;
}

impl FindColumn for pulp::Scalar {
    #[inline(always)]
    fn matches(self, columns: &[u32; WINDOW], wanted: u32) -> u16 {
        columns.iter().enumerate().map(|(i, &column)| u16::from(column == wanted) << i).sum()
    }
}

#[cfg(target_arch = "x86_64")]
impl FindColumn for pulp::x86::V3 {
    #[inline(always)]
    fn matches(self, columns: &[u32; WINDOW], wanted: u32) -> u16 {
        let wanted = self.avx._mm256_set1_epi32(wanted as i32);
        let halves: [std::arch::x86_64::__m256i; 2] = pulp::cast(*columns);
        let [low, high] = halves.map(|half| {
            let equal = self.avx2._mm256_cmpeq_epi32(half, wanted);
            self.avx._mm256_movemask_ps(self.avx._mm256_castsi256_ps(equal)) as u16
        });
        low | high << 8
    }
}

#[cfg(target_arch = "x86_64")]
impl FindColumn for pulp::x86::V4 {
    #[inline(always)]
    fn matches(self, columns: &[u32; WINDOW], wanted: u32) -> u16 {
        (*self).matches(columns, wanted)
    }
}

/// Adds terms to the entries of a row whose columns are known to be there; the own column is left out.
///
/// `columns` and `values` begin with the row and go on beyond it, so that a whole window can be looked at:
/// the first match is in the row.
#[inline(always)]
fn add_to_row<S: FindColumn, const N: usize>(
    simd: S,
    columns: &[u32],
    values: &mut [f64],
    own: usize,
    wanted: &[u32; N],
    terms: &[f64; N],
) {
    let windows = (columns.first_chunk::<WINDOW>(), values.first_chunk_mut::<WINDOW>());
    let (Some(near_columns), Some(near_values)) = windows else {
        return (0..N).filter(|&b| b != own).for_each(|b| add_far(columns, values, wanted[b], terms[b]));
    };
    // Which of the terms lie beyond the window; seldom any.
    let mut far = 0;
    for b in 0..N {
        if b != own {
            let found = simd.matches(near_columns, wanted[b]);
            if found == 0 {
                far |= 1 << b;
            } else {
                near_values[found.trailing_zeros() as usize % WINDOW] += terms[b];
            }
        }
    }
    if far != 0 {
        (0..N).filter(|&b| far >> b & 1 == 1).for_each(|b| add_far(columns, values, wanted[b], terms[b]));
    }
}

/// Adds one term by looking at one column after another.
#[cold]
fn add_far(columns: &[u32], values: &mut [f64], wanted: u32, term: f64) {
    values[find(columns, wanted)] += term;
}

/// Position of a column that is there.
#[inline(always)]
fn find(columns: &[u32], wanted: u32) -> usize {
    columns.iter().position(|&column| column == wanted).unwrap_or(0)
}

/// Runs a block with the vector instructions of a level.
fn dispatch<V: Scalar, const N: usize>(level: SimdLevel, task: BlockTask<'_, V, N>) -> Result<(), FemError> {
    #[cfg(target_arch = "x86_64")]
    match level {
        SimdLevel::Avx512 => {
            if let Some(simd) = pulp::x86::V4::try_new() {
                return simd.vectorize(Vectorized { simd, task });
            }
        }
        SimdLevel::Avx2 => {
            if let Some(simd) = pulp::x86::V3::try_new() {
                return simd.vectorize(Vectorized { simd, task });
            }
        }
        SimdLevel::Scalar | SimdLevel::Native => {}
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = level;
    task.run(pulp::Scalar)
}

/// Carries a token into the function that is compiled for its instructions.
struct Vectorized<'a, S, V, const N: usize> {
    simd: S,
    task: BlockTask<'a, V, N>,
}

impl<S: FindColumn, V: Scalar, const N: usize> NullaryFnOnce for Vectorized<'_, S, V, N> {
    type Output = Result<(), FemError>;

    #[inline(always)]
    fn call(self) -> Self::Output {
        self.task.run(self.simd)
    }
}

/// One block of rows, ready to be assembled.
struct BlockTask<'a, V, const N: usize> {
    problem: &'a Problem<'a>,
    rows: Range<usize>,
    facets: &'a [u32],
    out: BlockRows<'a, V>,
    scratch: &'a mut Scratch,
}

impl<V: Scalar, const N: usize> BlockTask<'_, V, N> {
    #[inline(always)]
    fn run<S: FindColumn>(mut self, simd: S) -> Result<(), FemError> {
        self.scratch.values.clear();
        let n_entries = self.out.starts.last().map_or(0, |&end| end as usize);
        self.scratch.values.resize(n_entries + WINDOW, 0.0);
        self.scratch.diagonal.clear();
        self.scratch.diagonal.resize(self.rows.len(), 0.0);
        self.add_cells(simd)?;
        self.add_facets();
        self.finish();
        Ok(())
    }

    #[inline(always)]
    fn add_cells<S: FindColumn>(&mut self, simd: S) -> Result<(), FemError> {
        let coefficients = &self.problem.coefficients;
        let mesh = coefficients.mesh;
        let (all_cells, points) = (mesh.cells.as_chunks::<N>().0, mesh.points.as_slice());
        let scratch = &mut *self.scratch;
        let mut nodes = [[0u32; N]; CHUNK];
        for cells in scratch.cells.chunks(CHUNK) {
            gather(&mut nodes, &mut scratch.corners, all_cells, points, cells);
            coefficients.eval(&mut scratch.coefficients, cells, &mut scratch.evaluation)?;
            element_matrices::<S, N>(
                simd,
                &mut scratch.elements,
                &scratch.corners,
                &scratch.coefficients,
                cells.len(),
            );
            let elements = &scratch.elements;
            let measures = &elements.measure[..cells.len()];
            if !measures.iter().all(|&measure| super::measure_is_sound(measure)) {
                let lane = measures.iter().position(|&m| !super::measure_is_sound(m)).unwrap_or(0);
                return Err(super::degenerate(mesh, cells[lane] as usize, measures[lane]));
            }
            let (first, n_rows) = (self.rows.start as u32, self.rows.len());
            for (lane, nodes) in nodes[..cells.len()].iter().enumerate() {
                for a in 0..N {
                    let row = nodes[a].wrapping_sub(first) as usize;
                    if row >= n_rows {
                        continue;
                    }
                    scratch.diagonal[row] += elements.diagonal[a][lane];
                    self.out.rhs[row] += elements.load[a][lane];
                    let start = self.out.starts[row] as usize;
                    let terms = std::array::from_fn(|b| elements.off_diagonal[pair::<N>(a, b)][lane]);
                    add_to_row(
                        simd,
                        &self.out.columns[start..],
                        &mut scratch.values[start..],
                        a,
                        nodes,
                        &terms,
                    );
                }
            }
            if !self.out.reacts.is_empty() {
                for (lane, nodes) in nodes[..cells.len()].iter().enumerate() {
                    for node in nodes {
                        let row = node.wrapping_sub(first) as usize;
                        if row < n_rows {
                            self.out.reacts[row] |= scratch.coefficients.reacts[lane];
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn add_facets(&mut self) {
        for &facet in self.facets {
            let term = &self.problem.facet_terms[facet as usize];
            for a in 0..N - 1 {
                let row = (term.nodes[a] as usize).wrapping_sub(self.rows.start);
                if row < self.rows.len() {
                    self.out.rhs[row] += term.load[a];
                }
            }
            for (value, (a, b)) in term.matrix.iter().zip(FACET_ENTRIES) {
                if a < N - 1 && b < N - 1 {
                    self.add_entry(term.nodes[a], term.nodes[b], *value);
                    if a != b {
                        self.add_entry(term.nodes[b], term.nodes[a], *value);
                    }
                }
            }
        }
    }

    fn add_entry(&mut self, row: u32, column: u32, value: f64) {
        let local = (row as usize).wrapping_sub(self.rows.start);
        if local >= self.rows.len() {
            return;
        }
        if row == column {
            self.scratch.diagonal[local] += value;
        } else {
            let start = self.out.starts[local] as usize;
            let position = start + find(&self.out.columns[start..], column);
            self.scratch.values[position] += value;
        }
    }

    /// Puts the diagonal in, eliminates constraints, and rounds.
    #[inline(always)]
    fn finish(&mut self) {
        let constraints = &self.problem.constraints;
        let scratch = &mut *self.scratch;
        for (local, row) in self.rows.clone().enumerate() {
            let entries = self.out.starts[local] as usize..self.out.starts[local + 1] as usize;
            let columns = &self.out.columns[entries.clone()];
            let values = &mut scratch.values[entries.clone()];
            let on_diagonal = find(columns, row as u32);
            if constraints.contains(row) {
                values.fill(0.0);
                values[on_diagonal] = 1.0;
                self.out.rhs[local] = 0.0;
            } else {
                values[on_diagonal] = scratch.diagonal[local];
                if !constraints.is_empty() {
                    for (&column, value) in columns.iter().zip(values.iter_mut()) {
                        if let Some(given) = constraints.value(column as usize) {
                            self.out.rhs[local] -= *value * given;
                            *value = 0.0;
                        }
                    }
                }
            }
            match &mut self.out.values {
                Out::Rows(out) => {
                    let out = out[entries].iter_mut().zip(values.iter());
                    out.for_each(|(out, &value)| *out = V::from_f64(value));
                }
                Out::Places(out, places) => scatter(out, places, row, columns, values),
            }
        }
    }
}

/// Writes the entries of a row, given by ascending column, to their places.
fn scatter<V: Scalar>(out: &SharedMut<'_, V>, places: &Places, row: usize, columns: &[u32], values: &[f64]) {
    // SAFETY: each entry of each row has a place of its own among the stored values, and a row is in one block.
    let write = |k: usize, value: f64| unsafe { out.write(places.place(row, k), V::from_f64(value)) };
    if places.keeps_columns_in_order() {
        values.iter().enumerate().for_each(|(k, &value)| write(k, value));
        return;
    }
    let mut ordered = columns.to_vec();
    places.order(&mut ordered);
    for (k, column) in ordered.into_iter().enumerate() {
        write(k, values[find(columns, column)]);
    }
}

/// Collects nodes and corner coordinates of some cells.
#[inline(always)]
fn gather<const N: usize>(
    nodes: &mut [[u32; N]; CHUNK],
    corners: &mut Corners,
    all_cells: &[[u32; N]],
    points: &[[f64; 3]],
    cells: &[u32],
) {
    for (lane, (&cell, nodes)) in cells.iter().zip(nodes).enumerate() {
        *nodes = all_cells[cell as usize];
        for a in 0..N {
            let point = points[nodes[a] as usize];
            for axis in 0..3 {
                corners.0[3 * a + axis][lane % CHUNK] = point[axis];
            }
        }
    }
}

/// Position of the entry (a, b) among the off-diagonal ones: 01, 02, 03, 12, 13, 23 or 01, 02, 12.
const fn pair<const N: usize>(a: usize, b: usize) -> usize {
    let (a, b) = if a < b { (a, b) } else { (b, a) };
    if a == b {
        return 0;
    }
    a * (2 * N - a - 1) / 2 + b - a - 1
}
