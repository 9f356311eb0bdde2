//! Assembly of the matrix, for direct use and as a reference for matrix-free operators.

use femtile_device::{Device, parallel};
use femtile_sparse::csr::Csr;

use super::TensorProblem;
use super::sparsity::Pattern;
use crate::FemError;
use crate::assembly::AssembledSystem;
use crate::tensor::{CellMatrices, CellScratch};

/// Entries of matrices of cells that are in memory together, and the least and most cells.
const ENTRIES: usize = 1 << 22;
const CELLS: [usize; 2] = [64, 1 << 16];

/// Rows that a thread fills at least, and parts of all rows for each thread.
const ROWS: usize = 64;
const PARTS_PER_THREAD: usize = 2;

/// Entries of the matrix during assembly, and the lifting of Dirichlet values.
struct Filling<'a> {
    problem: &'a TensorProblem<'a>,
    pattern: Pattern,
    values: Vec<f64>,
    /// $-A g$ for the Dirichlet values $g$ of constrained degrees of freedom.
    lifting: Vec<f64>,
}

/// Assembles the matrix of a problem, with unit rows and columns for constrained degrees of freedom, and its right
/// side.
///
/// Host threads assemble; `progress` receives the fraction done.
///
/// # Cost
/// $O(p^{3d})$ per cell for its matrix, $O(p^{2d})$ for its entries, 12 bytes each.
/// # Errors
/// Errors of [`CellMatrices::matrix`] and of [`TensorProblem::lift`].
pub fn assemble<D: Device>(
    device: &D,
    problem: &TensorProblem<'_>,
    cells: &CellMatrices<'_>,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<AssembledSystem<f64, D>, FemError> {
    let space = problem.space();
    let pattern = Pattern::new(space, problem.constraints());
    let values = vec![0.0; pattern.columns.len()];
    let mut filling = Filling { problem, pattern, values, lifting: vec![0.0; space.n_dofs()] };
    let n = space.dofs_per_cell();
    let per_block = (ENTRIES / (n * n)).clamp(CELLS[0], CELLS[1]).min(space.n_cells().max(1));
    // Kept between blocks, as threads that ask for memory at once wait for each other.
    let (mut all_dofs, mut entries) = (vec![0; per_block * n], vec![0.0; per_block * n * n]);
    for block in (0..space.n_cells()).step_by(per_block) {
        let n_cells = per_block.min(space.n_cells() - block);
        let rooms = all_dofs.chunks_exact_mut(n).zip(entries.chunks_exact_mut(n * n));
        let rooms = (block..block + n_cells).zip(rooms).collect();
        parallel::try_for_each_item_with(
            rooms,
            CellScratch::default,
            |scratch, (position, (dofs, matrix))| {
                space.cell_dofs(position, dofs);
                cells.write_matrix(position, scratch, matrix)
            },
        )?;
        let made = all_dofs.chunks_exact(n).zip(entries.chunks_exact(n * n));
        filling.add(&made.take(n_cells).collect::<Vec<_>>());
        progress(block as f64 / space.n_cells() as f64);
    }
    let facets = problem.facet_matrices().iter();
    filling.add(&facets.map(|facet| (&facet.dofs[..], &facet.entries[..])).collect::<Vec<_>>());
    let Filling { pattern, values, lifting, .. } = filling.with_unit_rows();
    let system = problem.lifted(device, lifting)?;
    let matrix = Csr::from_parts(device, space.n_dofs(), pattern.offsets, pattern.columns, values)?;
    Ok(system.with_matrix(matrix))
}

/// Returns the ends of parts of `n_rows` rows to which these matrices add about the same number of terms.
/// Neighbouring cells have most of their rows near each other, so parts of equal length would leave most
/// threads without work.
fn ends_of_parts(matrices: &[(&[u32], &[f64])], n_rows: usize) -> Vec<usize> {
    let mut counts = vec![0; n_rows.div_ceil(ROWS)];
    for (dofs, _) in matrices {
        dofs.iter().for_each(|&dof| counts[dof as usize / ROWS] += 1);
    }
    let n_parts = PARTS_PER_THREAD * rayon::current_num_threads();
    let most = counts.iter().sum::<usize>().div_ceil(n_parts);
    let (mut ends, mut sum) = (Vec::with_capacity(n_parts + 1), 0);
    for (chunk, count) in counts.into_iter().enumerate() {
        sum += count;
        if sum >= most && sum > 0 {
            ends.push(n_rows.min((chunk + 1) * ROWS));
            sum = 0;
        }
    }
    ends.extend((ends.last() != Some(&n_rows)).then_some(n_rows));
    ends
}

impl Filling<'_> {
    /// Adds matrices of cells or facets with their degrees of freedom, to each row in their order; threads have rows of their
    /// own.
    fn add(&mut self, matrices: &[(&[u32], &[f64])]) {
        let ends = ends_of_parts(matrices, self.lifting.len());
        let parts = self.pattern.split(&ends, &mut self.values, &mut self.lifting);
        let on = (&self.pattern, self.problem.constraints());
        parallel::for_each_item(parts, 1, |mut rows| {
            matrices.iter().for_each(|(dofs, matrix)| rows.add(on, dofs, (matrix, &[])));
        });
    }

    fn with_unit_rows(mut self) -> Self {
        for &dof in self.problem.constraints().dofs() {
            let place = self.pattern.offsets.get(dof as usize);
            self.values[place] = 1.0;
        }
        self
    }
}
