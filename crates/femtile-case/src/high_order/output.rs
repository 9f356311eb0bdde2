//! The solution as a file.

use femtile_fem::dofs::TensorSpace;
use femtile_fem::tensor::at_even_points;
use femtile_mesh::Field;
use femtile_mesh::io::vtu::{LagrangeCells, WriteOptions, write_lagrange};

use crate::{Case, CaseError, output};

/// Writes `solution.vtu`: cells of the degree of the solution or of the order of the mesh, whichever is higher, with its
/// values at their points.
pub(super) fn write_solution(case: &Case, space: &TensorSpace<'_>, u: &[f64]) -> Result<(), CaseError> {
    let mesh = space.mesh();
    let order = space.degree().max(mesh.curved.as_ref().map_or(1, |curved| curved.order));
    let found = at_even_points(space, order, u)?;
    let mut cell_data: Vec<(&str, &Field)> =
        mesh.cell_fields.iter().map(|(name, field)| (name.as_str(), field)).collect();
    let tags = Field { n_components: 1, values: mesh.cell_tags.iter().map(|&tag| f64::from(tag)).collect() };
    if !mesh.cell_tags.is_empty() {
        cell_data.push(("tag", &tags));
    }
    let cells = LagrangeCells { kind: mesh.kind, order, points: &found.points, cells: &found.cells };
    let u = Field { n_components: 1, values: found.values };
    write_lagrange(&output::solution_path(case), &cells, &[("u", &u)], &cell_data, WriteOptions::default())?;
    Ok(())
}
