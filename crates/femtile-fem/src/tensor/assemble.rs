//! Assembly of the matrix, for direct use and as a reference for matrix-free operators.

use std::ops::ControlFlow;

use femtile_device::{Device, parallel};
use femtile_sparse::csr::Csr;

use super::sparsity::Pattern;
use super::{TensorProblem, TensorSystem};
use crate::FemError;
use crate::tensor::CellMatrices;

/// Cells whose matrices are in memory together.
const CELLS: usize = 64;

/// Entries of the matrix during assembly, and the product with given values.
struct Filling<'a> {
    problem: &'a TensorProblem<'a>,
    pattern: Pattern,
    values: Vec<f64>,
    /// $A g$ for the given values $g$ of constrained degrees of freedom.
    product: Vec<f64>,
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
pub fn assemble<'a, D: Device>(
    device: &D,
    problem: &TensorProblem<'a>,
    cells: &CellMatrices<'_>,
    progress: &(dyn Fn(f64) + Sync),
) -> Result<(Csr<f64, D>, TensorSystem<'a, D>), FemError> {
    let go_on = |fraction| {
        progress(fraction);
        ControlFlow::Continue(())
    };
    assemble_interruptible(device, problem, cells, &go_on)
}

/// As [`assemble`], and stops once `progress` breaks.
///
/// # Errors
/// Errors of [`assemble`]; [`FemError::Interrupted`].
pub fn assemble_interruptible<'a, D: Device>(
    device: &D,
    problem: &TensorProblem<'a>,
    cells: &CellMatrices<'_>,
    progress: &(dyn Fn(f64) -> ControlFlow<()> + Sync),
) -> Result<(Csr<f64, D>, TensorSystem<'a, D>), FemError> {
    let space = problem.space();
    let pattern = Pattern::new(space, problem.constraints());
    let values = vec![0.0; pattern.columns.len()];
    let mut filling = Filling { problem, pattern, values, product: vec![0.0; space.n_dofs()] };
    let mut dofs = vec![0; space.dofs_per_cell()];
    for block in (0..space.n_cells()).step_by(CELLS) {
        let positions = block..(block + CELLS).min(space.n_cells());
        let matrices = parallel::map(positions.len(), 1, |i| cells.matrix(block + i));
        for (position, matrix) in positions.zip(matrices) {
            space.cell_dofs(position, &mut dofs);
            filling.add(&dofs, &matrix?);
        }
        if progress(block as f64 / space.n_cells() as f64).is_break() {
            return Err(FemError::Interrupted);
        }
    }
    problem.facet_matrices().iter().for_each(|facet| filling.add(&facet.dofs, &facet.entries));
    let Filling { pattern, values, product, .. } = filling.with_unit_rows();
    let system = problem.lifted(device, product)?;
    let matrix = Csr::from_parts(device, space.n_dofs(), pattern.offsets, pattern.columns, values)?;
    Ok((matrix, system))
}

impl Filling<'_> {
    /// Adds the matrix of a cell or facet.
    fn add(&mut self, dofs: &[u32], matrix: &[f64]) {
        let constraints = self.problem.constraints();
        for (&row, entries) in dofs.iter().zip(matrix.chunks_exact(dofs.len())) {
            if constraints.contains(row as usize) {
                continue;
            }
            for (&column, entry) in dofs.iter().zip(entries) {
                if let Some(given) = constraints.value(column as usize) {
                    self.product[row as usize] += entry * given;
                } else if let Some(place) = self.pattern.place(row as usize, column) {
                    self.values[place] += entry;
                }
            }
        }
    }

    fn with_unit_rows(mut self) -> Self {
        for &dof in self.problem.constraints().dofs() {
            let place = self.pattern.offsets.get(dof as usize);
            self.values[place] = 1.0;
        }
        self
    }
}
