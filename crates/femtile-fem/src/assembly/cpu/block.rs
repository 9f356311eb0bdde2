//! One block of rows: its cells in SIMD lanes, its facet terms, and elimination of constraints.

use std::ops::Range;

use femtile_device::Scalar;
use femtile_device::cpu::{SharedMut, SimdLevel};
use femtile_sparse::EntryPositions;
use pulp::NullaryFnOnce;

use super::columns::{FindColumn, WINDOW, add_to_row, find};
use super::drift::write_drift;
use super::{BlockRows, Out, Scratch};
use crate::FemError;
use crate::assembly::degenerate;
use crate::assembly::element::{Corners, element_matrices};
use crate::assembly::kernels::AssemblyProblem;
use crate::assembly::measure_is_sound;
use crate::forms::{CHUNK, State};

/// Assembles a block with the vector instructions of a level.
pub fn dispatch<V: Scalar, const N: usize>(
    level: SimdLevel,
    task: BlockTask<'_, V, N>,
) -> Result<(), FemError> {
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

/// Carries a SIMD token into the function compiled for its instructions.
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
pub struct BlockTask<'a, V, const N: usize> {
    pub problem: &'a AssemblyProblem<'a>,
    pub state: State<'a>,
    pub rows: Range<usize>,
    pub facets: &'a [u32],
    pub out: BlockRows<'a, V>,
    pub scratch: &'a mut Scratch,
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
            coefficients.eval(&mut scratch.coefficients, cells, self.state, &mut scratch.evaluation)?;
            element_matrices::<S, N>(
                simd,
                &mut scratch.elements,
                &scratch.corners,
                &scratch.coefficients,
                cells.len(),
            );
            let elements = &scratch.elements;
            let measures = &elements.measure[..cells.len()];
            if !measures.iter().all(|&measure| measure_is_sound(measure)) {
                let lane = measures.iter().position(|&m| !measure_is_sound(m)).unwrap_or(0);
                return Err(degenerate(mesh, cells[lane] as usize, measures[lane]));
            }
            let has_drift = coefficients.has_drift();
            if has_drift {
                let nodes = &nodes[..cells.len()];
                write_drift(&mut scratch.drift, mesh, nodes, &scratch.coefficients, self.state.unknown);
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
                    let mut terms = std::array::from_fn(|b| elements.off_diagonal[pair::<N>(a, b)][lane]);
                    if has_drift {
                        let drift = &scratch.drift[lane];
                        terms.iter_mut().zip(drift.matrix[a]).for_each(|(term, drift)| *term += drift);
                        scratch.diagonal[row] += drift.matrix[a][a];
                        self.out.rhs[row] += drift.load[a];
                    }
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
        }
        Ok(())
    }

    fn add_facets(&mut self) {
        let problem = self.problem;
        for &facet in self.facets {
            let term = &problem.facet_terms[facet as usize];
            for (&node, load) in term.matrix.dofs.iter().zip(&term.load) {
                let row = (node as usize).wrapping_sub(self.rows.start);
                if row < self.rows.len() {
                    self.out.rhs[row] += load;
                }
            }
            term.entries().for_each(|(row, column, value)| self.add_entry(row, column, value));
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

    /// Sets the diagonal, eliminates constraints, and rounds.
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

/// Writes the entries of a row, by ascending column, to their places.
fn scatter<V: Scalar>(
    out: &SharedMut<'_, V>,
    places: &EntryPositions,
    row: usize,
    columns: &[u32],
    values: &[f64],
) {
    // SAFETY: each entry has a place of its own among the stored values, and a row is in one block.
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

/// Gathers nodes and corner coordinates of some cells.
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

/// Returns the position of entry (a, b) among the off-diagonal ones: 01, 02, 03, 12, 13, 23 or 01, 02, 12.
const fn pair<const N: usize>(a: usize, b: usize) -> usize {
    let (a, b) = if a < b { (a, b) } else { (b, a) };
    if a == b {
        return 0;
    }
    a * (2 * N - a - 1) / 2 + b - a - 1
}
