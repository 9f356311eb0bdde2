//! Flat cells of a mesh, and exact solves on the lines of nodes through them.

use femtile_device::cpu::vector::Lanes;
use femtile_device::{Cpu, parallel};
use femtile_fem::tensor::{FacetMatrix, TensorProblem};
use femtile_linalg::LinalgError;
use femtile_mesh::MiddleMap;
use femtile_multigrid::{LineCell, LineCells, LineSolves};
use femtile_sum_factorization::SumFactorization;

/// Cells per parallel task.
const CELLS: usize = 64;

/// Returns whether a problem has flat cells.
pub(crate) fn has_flat_cells(problem: &TensorProblem<'_>) -> bool {
    let space = problem.space();
    let is_flat = |position| cell(problem, position).stiff_axis(space.dimension()).is_some();
    !parallel::all(space.n_cells(), CELLS, |position| !is_flat(position))
}

/// Makes the line solves through the flat cells of a problem whose operator has this diagonal.
///
/// # Errors
/// A diagonal that is not positive.
pub(super) fn solves<T: SumFactorization + Lanes>(
    cpu: &Cpu,
    problem: &TensorProblem<'_>,
    diagonal: &[T],
) -> Result<Option<LineSolves<T>>, LinalgError> {
    if !has_flat_cells(problem) {
        return Ok(None);
    }
    let space = problem.space();
    let of_cell = |position: usize, dofs: &mut [u32]| {
        space.cell_dofs(position, dofs);
        cell(problem, position)
    };
    let (degree, dimension, n_cells) = (space.degree(), space.dimension(), space.n_cells());
    let cells = LineCells { degree, dimension, n_cells, cell: &of_cell };
    let of_facet = |FacetMatrix { dofs, entries }: &FacetMatrix| {
        let diagonal = entries.iter().step_by(dofs.len() + 1).copied();
        dofs.iter().copied().zip(diagonal).collect::<Vec<_>>()
    };
    let added = problem.facet_matrices().iter().flat_map(of_facet);
    LineSolves::new(cpu, &cells, diagonal, problem.constraints().dofs(), added)
}

/// A cell by its corners, with the coefficients at its centre.
fn cell(problem: &TensorProblem<'_>, position: usize) -> LineCell {
    let (space, form) = (problem.space(), problem.form());
    let mesh = space.mesh();
    let corners: Vec<[f64; 3]> =
        space.corners(position).iter().map(|&node| mesh.points[node as usize]).collect();
    let map = MiddleMap::of_corners(&corners);
    let number = space.order()[position] as usize;
    let tag = mesh.cell_tags.get(number).copied().unwrap_or(0);
    let sigma = form.sigma.tensor_at(number, tag, map.middle);
    let lambda = form.lambda.scalar_at(number, tag, map.middle);
    let [x, y, z] = map.columns;
    let rows = [cross(y, z), cross(z, x), cross(x, y)];
    let volume = map.volume();
    let stiffness = rows.map(|row| dot(row, sigma.map(|of_sigma| dot(of_sigma, row))) / volume);
    LineCell { stiffness, mass: lambda * volume }
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
