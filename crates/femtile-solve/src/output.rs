//! Solutions as files.

use std::path::Path;

use femtile_device::parallel;
use femtile_fem::dofs::TensorSpace;
use femtile_fem::tensor::{EvenPoints, at_even_points};
use femtile_mesh::io::FileSum;
use femtile_mesh::io::vtu::{BegunFile, LagrangeCells, WriteOptions, write_lagrange, write_with};
use femtile_mesh::{Field, IsInterrupted, Mesh};

use crate::discretization::Discretization;
use crate::right_side::interleaved;
use crate::{Fields, SolveError};

/// Writes a solution with the mesh, its tags and its fields, and further fields; returns the sum of the file where the
/// options ask for it.
pub(crate) fn write_vtu(
    path: &Path,
    (discretization, components): (&Discretization<'_>, &[Vec<f64>]),
    fields: &Fields,
    options: WriteOptions,
) -> Result<Option<FileSum>, SolveError> {
    match discretization.space() {
        Some(space) => write_tensor(path, (space, components), fields, options),
        None => write_simplices(path, (discretization.mesh(), &components[0]), fields, options),
    }
}

/// Begins the file of a solution on triangles or tetrahedra, before it is solved for; [`Solution::finish_vtu`] ends it.
///
/// None for other cells, and with options of a file that cannot be begun.
///
/// # Errors
/// [`SolveError::Mesh`] with the path; [`femtile_mesh::MeshError::Interrupted`].
///
/// [`Solution::finish_vtu`]: crate::Solution::finish_vtu
pub fn begin_vtu(
    path: impl AsRef<Path>,
    mesh: &Mesh,
    options: WriteOptions,
    is_interrupted: IsInterrupted<'_>,
) -> Result<Option<BegunFile>, SolveError> {
    if !mesh.kind.is_simplex() {
        return Ok(None);
    }
    Ok(BegunFile::begin(path.as_ref(), mesh, &[("u", 1)], options, is_interrupted)?)
}

/// Writes a solution into a file that was begun.
pub(crate) fn finish_vtu(file: BegunFile, u: &[f64]) -> Result<Option<FileSum>, SolveError> {
    Ok(file.finish(&[("u", &scalar(u))])?)
}

/// A copy of the values at nodes, made by all threads: fresh memory costs more than the copy.
fn scalar(values: &[f64]) -> Field {
    Field { n_components: 1, values: parallel::map(values.len(), 1 << 14, |i| values[i]) }
}

fn write_simplices(
    path: &Path,
    (mesh, u): (&Mesh, &[f64]),
    fields: &Fields,
    options: WriteOptions,
) -> Result<Option<FileSum>, SolveError> {
    let mut nodal = vec![("u", scalar(u))];
    for (name, vectors) in &fields.vectors {
        nodal.push((name, Field { n_components: 3, values: vectors.clone() }));
    }
    let error = fields.error_estimate().map(|estimate| scalar(&estimate.cells));
    let cell_data: Vec<(&str, &Field)> = error.iter().map(|field| ("error", field)).collect();
    let point_data: Vec<(&str, &Field)> = nodal.iter().map(|(name, field)| (*name, field)).collect();
    Ok(write_with(path, mesh, &point_data, &cell_data, options)?)
}

/// Writes cells of the degree of the solution or of the order of the mesh, whichever is higher, with its
/// values at their points, those of all components as one field.
fn write_tensor(
    path: &Path,
    (space, components): (&TensorSpace<'_>, &[Vec<f64>]),
    fields: &Fields,
    options: WriteOptions,
) -> Result<Option<FileSum>, SolveError> {
    let mesh = space.mesh();
    let order = space.degree().max(mesh.curved.as_ref().map_or(1, |curved| curved.order));
    let of_component = |u: &Vec<f64>| at_even_points(space, order, u);
    let mut found = components.iter().map(of_component).collect::<Result<Vec<_>, _>>()?;
    let values = found.iter_mut().map(|found| std::mem::take(&mut found.values)).collect();
    let EvenPoints { points, cells, .. } = &found[0];
    let u = Field { n_components: components.len(), values: interleaved(values) };
    let mut nodal = vec![("u", u)];
    for (name, vectors) in &fields.vectors {
        let along = |axis: usize| vectors.iter().skip(axis).step_by(3).copied().collect::<Vec<f64>>();
        let of_axis = |axis| Ok(at_even_points(space, order, &along(axis))?.values);
        let axes = (0..3).map(of_axis).collect::<Result<Vec<_>, SolveError>>()?;
        nodal.push((name, Field { n_components: 3, values: interleaved(axes) }));
    }
    let scalar = |values: Vec<f64>| Field { n_components: 1, values };
    let tags = scalar(mesh.cell_tags.iter().map(|&tag| f64::from(tag)).collect());
    let error = fields.error_estimate().map(|estimate| scalar(estimate.cells.clone()));
    let mut cell_data: Vec<(&str, &Field)> =
        mesh.cell_fields.iter().map(|(name, field)| (name.as_str(), field)).collect();
    cell_data.extend((!mesh.cell_tags.is_empty()).then_some(("tag", &tags)));
    cell_data.extend(error.iter().map(|field| ("error", field)));
    let point_data: Vec<(&str, &Field)> = nodal.iter().map(|(name, field)| (*name, field)).collect();
    let cells = LagrangeCells { kind: mesh.kind, order, points, cells };
    Ok(write_lagrange(path, &cells, &point_data, &cell_data, options)?)
}
