//! Solutions as files.

use std::path::Path;

use femtile_fem::dofs::TensorSpace;
use femtile_fem::tensor::{EvenPoints, at_even_points};
use femtile_mesh::io::vtu::{self, LagrangeCells, WriteOptions, write_lagrange};
use femtile_mesh::{Field, Mesh};

use crate::SolveError;
use crate::discretization::Discretization;
use crate::right_side::interleaved;

/// Writes a solution with the mesh, its tags and its fields.
pub(crate) fn write_vtu(
    path: &Path,
    discretization: &Discretization<'_>,
    components: &[Vec<f64>],
) -> Result<(), SolveError> {
    match discretization.space() {
        Some(space) => write_tensor(path, space, components),
        None => write_simplices(path, discretization.mesh(), &components[0]),
    }
}

fn write_simplices(path: &Path, mesh: &Mesh, u: &[f64]) -> Result<(), SolveError> {
    let u = Field { n_components: 1, values: u.to_vec() };
    Ok(vtu::write(path, mesh, &[("u", &u)], &[])?)
}

/// Writes cells of the degree of the solution or of the order of the mesh, whichever is higher, with its
/// values at their points, those of all components as one field.
fn write_tensor(path: &Path, space: &TensorSpace<'_>, components: &[Vec<f64>]) -> Result<(), SolveError> {
    let mesh = space.mesh();
    let order = space.degree().max(mesh.curved.as_ref().map_or(1, |curved| curved.order));
    let of_component = |u: &Vec<f64>| at_even_points(space, order, u);
    let mut found = components.iter().map(of_component).collect::<Result<Vec<_>, _>>()?;
    let values = found.iter_mut().map(|found| std::mem::take(&mut found.values)).collect();
    let EvenPoints { points, cells, .. } = &found[0];
    let mut cell_data: Vec<(&str, &Field)> =
        mesh.cell_fields.iter().map(|(name, field)| (name.as_str(), field)).collect();
    let tags = Field { n_components: 1, values: mesh.cell_tags.iter().map(|&tag| f64::from(tag)).collect() };
    if !mesh.cell_tags.is_empty() {
        cell_data.push(("tag", &tags));
    }
    let cells = LagrangeCells { kind: mesh.kind, order, points, cells };
    let u = Field { n_components: components.len(), values: interleaved(values) };
    write_lagrange(path, &cells, &[("u", &u)], &cell_data, WriteOptions::default())?;
    Ok(())
}
