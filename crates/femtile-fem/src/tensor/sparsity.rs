//! Sparsity pattern: free degrees of freedom that share a cell.

use femtile_device::parallel;
use femtile_sparse::csr::HostOffsets;

use crate::constraints::Constraints;
use crate::dofs::TensorSpace;

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
        let (starts, cells) = cells_of_dofs(&dofs, n, space.n_dofs());
        let row = |row: usize| -> Vec<u32> {
            if constraints.contains(row) {
                return vec![row as u32];
            }
            let cells = &cells[starts[row]..starts[row + 1]];
            let mut columns: Vec<u32> =
                cells.iter().flat_map(|&cell| &dofs[cell as usize * n..][..n]).copied().collect();
            columns.sort_unstable();
            columns.dedup();
            columns.retain(|&column| !constraints.contains(column as usize));
            columns
        };
        let rows = parallel::map(space.n_dofs(), 1, row);
        let offsets = HostOffsets::from_row_lengths(rows.iter().map(Vec::len));
        Self { offsets, columns: rows.concat() }
    }

    /// Returns the place of the entry at a row and column, if there is one.
    pub fn place(&self, row: usize, column: u32) -> Option<usize> {
        let begin = self.offsets.get(row);
        let columns = &self.columns[begin..self.offsets.get(row + 1)];
        columns.binary_search(&column).ok().map(|at| begin + at)
    }
}

/// Returns the positions of the cells of each degree of freedom, ascending, and the start of each list.
fn cells_of_dofs(dofs: &[u32], n: usize, n_dofs: usize) -> (Vec<usize>, Vec<u32>) {
    let mut starts = vec![0; n_dofs + 2];
    dofs.iter().for_each(|&dof| starts[dof as usize + 2] += 1);
    (2..starts.len()).for_each(|at| starts[at] += starts[at - 1]);
    let mut cells = vec![0; dofs.len()];
    for (at, &dof) in dofs.iter().enumerate() {
        // Filling moves each start to its end, which is the next one's start.
        let next = &mut starts[dof as usize + 1];
        cells[*next] = (at / n) as u32;
        *next += 1;
    }
    (starts, cells)
}
