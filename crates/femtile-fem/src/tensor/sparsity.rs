//! Sparsity pattern: free degrees of freedom that share a cell.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicUsize};

use femtile_device::cpu::zeroed_vec;
use femtile_device::parallel;
use femtile_space::TensorSpace;
use femtile_sparse::csr::HostOffsets;

use crate::constraints::Constraints;

/// Rows, and cells, of a parallel task.
const ROWS: usize = 1 << 12;
const CELLS: usize = 1 << 12;

/// Rows and their columns, ascending; constrained rows have only their diagonal, and no other row has their columns.
pub(super) struct Pattern {
    pub offsets: HostOffsets,
    pub columns: Vec<u32>,
}

impl Pattern {
    /// Computes the pattern of a space.
    ///
    /// # Cost
    /// Four bytes per degree of freedom of each cell, and eight per column temporarily.
    pub fn new(space: &TensorSpace<'_>, constraints: &Constraints) -> Self {
        let n = space.dofs_per_cell();
        let mut dofs = vec![0; space.n_cells() * n];
        parallel::for_chunks_mut(&mut dofs, n, |begin, dofs| space.cell_dofs(begin / n, dofs));
        let n_rows = space.n_dofs();
        let (starts, cells) = cells_of_dofs(&dofs, n, n_rows);
        let take_row = |row: usize, columns: &mut Vec<u32>| {
            columns.clear();
            if constraints.contains(row) {
                return columns.push(row as u32);
            }
            let cells = &cells[starts[row]..starts[row + 1]];
            columns.extend(cells.iter().flat_map(|&cell| &dofs[cell as usize * n..][..n]));
            columns.sort_unstable();
            columns.dedup();
            columns.retain(|&column| !constraints.contains(column as usize));
        };
        let pieces = parallel::map_with(n_rows.div_ceil(ROWS), 1, Vec::new, |columns, piece| {
            let (mut lengths, mut all) = (Vec::with_capacity(ROWS), Vec::new());
            for row in piece * ROWS..n_rows.min((piece + 1) * ROWS) {
                take_row(row, columns);
                lengths.push(columns.len());
                all.extend_from_slice(columns);
            }
            (lengths, all)
        });
        let lengths: Vec<usize> = pieces.iter().flat_map(|(lengths, _)| lengths).copied().collect();
        let offsets = HostOffsets::from_row_lengths(lengths.into_iter());
        let mut columns = zeroed_vec(offsets.get(n_rows));
        let mut rest = columns.as_mut_slice();
        let place = |(_, own): (Vec<usize>, Vec<u32>)| {
            let to: &mut [u32] = rest.split_off_mut(..own.len()).unwrap_or_default();
            (to, own)
        };
        let placed = pieces.into_iter().map(place).collect();
        parallel::for_each_item(placed, 1, |(to, own): (&mut [u32], Vec<u32>)| to.copy_from_slice(&own));
        Self { offsets, columns }
    }

    /// Returns the place of the entry at a row and column, if there is one.
    pub fn place(&self, row: usize, column: u32) -> Option<usize> {
        let begin = self.offsets.get(row);
        let columns = &self.columns[begin..self.offsets.get(row + 1)];
        columns.binary_search(&column).ok().map(|at| begin + at)
    }
}

/// Consecutive rows that one thread fills, with their right sides.
pub(super) struct Rows<'v> {
    first: usize,
    /// Place of the first entry among those of all rows.
    begin: usize,
    values: &'v mut [f64],
    rhs: &'v mut [f64],
}

impl Pattern {
    /// Splits values and right sides at the ends of parts of all rows, ascending.
    pub fn split<'v>(
        &self,
        ends: &[usize],
        mut values: &'v mut [f64],
        mut rhs: &'v mut [f64],
    ) -> Vec<Rows<'v>> {
        let mut first = 0;
        let part = |&end: &usize| {
            let begin = self.offsets.get(first);
            let own = values.split_off_mut(..self.offsets.get(end) - begin).unwrap_or_default();
            let rhs = rhs.split_off_mut(..end - first).unwrap_or_default();
            Rows { first: std::mem::replace(&mut first, end), begin, values: own, rhs }
        };
        ends.iter().map(part).collect()
    }
}

impl Rows<'_> {
    /// Adds the matrix and the load, if any, of a cell or facet in these rows; products with Dirichlet values are subtracted from
    /// the right side.
    pub fn add(
        &mut self,
        (pattern, constraints): (&Pattern, &Constraints),
        dofs: &[u32],
        (matrix, load): (&[f64], &[f64]),
    ) {
        let n_rows = self.rhs.len();
        for (i, (&row, entries)) in dofs.iter().zip(matrix.chunks_exact(dofs.len())).enumerate() {
            let row = row as usize;
            let Some(own) = row.checked_sub(self.first).filter(|&own| own < n_rows) else { continue };
            if constraints.contains(row) {
                continue;
            }
            let mut right = load.get(i).copied().unwrap_or(0.0);
            for (&column, entry) in dofs.iter().zip(entries) {
                if let Some(given) = constraints.value(column as usize) {
                    right -= entry * given;
                } else if let Some(place) = pattern.place(row, column) {
                    self.values[place - self.begin] += entry;
                }
            }
            self.rhs[own] += right;
        }
    }
}

/// Returns the positions of the cells of each degree of freedom, in any order, and the start of each list.
fn cells_of_dofs(dofs: &[u32], n: usize, n_dofs: usize) -> (Vec<usize>, Vec<u32>) {
    let counts: Vec<AtomicUsize> = (0..n_dofs).map(|_| AtomicUsize::new(0)).collect();
    let count = |dof: u32| counts[dof as usize].fetch_add(1, Relaxed);
    parallel::map_chunks(dofs, CELLS * n, |_, dofs| {
        for &dof in dofs {
            count(dof);
        }
    });
    let mut starts = Vec::with_capacity(n_dofs + 1);
    starts.push(0);
    for count in &counts {
        // From here on the place of the next cell.
        let begin = starts[starts.len() - 1];
        starts.push(begin + count.swap(begin, Relaxed));
    }
    let cells: Vec<AtomicU32> = (0..dofs.len()).map(|_| AtomicU32::new(0)).collect();
    parallel::map_chunks(dofs, CELLS * n, |begin, dofs| {
        for (at, &dof) in dofs.iter().enumerate() {
            cells[count(dof)].store(((begin + at) / n) as u32, Relaxed);
        }
    });
    (starts, cells.into_iter().map(AtomicU32::into_inner).collect())
}
