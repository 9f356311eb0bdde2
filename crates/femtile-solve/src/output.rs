//! Solutions as files.

use std::path::Path;
use std::sync::Arc;

use femtile_device::{parallel, part};
use femtile_fem::tensor::EvenPoints;
use femtile_mesh::io::FileSum;
use femtile_mesh::io::vtu::{BegunFile, LagrangeCells, WriteOptions, write_lagrange, write_with};
use femtile_mesh::{Field, IsInterrupted, Mesh};
use femtile_space::TensorSpace;

use crate::discretization::Discretization;
use crate::right_side::interleaved;
use crate::{Fields, SolveError};

/// Writes a solution with the mesh, its tags and its fields, and further fields; returns the sum of the file
/// if the options ask for it.
pub(crate) fn write_vtu(
    path: &Path,
    (discretization, components): (&Discretization<'_>, &[Vec<f64>]),
    fields: &Fields,
    options: WriteOptions<'_>,
) -> Result<Option<FileSum>, SolveError> {
    match discretization.space() {
        Some(space) => write_tensor(path, (space, components), fields, options),
        None => write_simplices(path, (discretization.mesh(), &components[0]), fields, options),
    }
}

/// The part of the file of a solution that is known before the solve: its mesh.
#[derive(Debug, Clone)]
pub struct SolutionFile<'m> {
    pub(crate) mesh: &'m Mesh,
    pub(crate) space: Option<Arc<TensorSpace<'m>>>,
    pub(crate) components: usize,
}

impl SolutionFile<'_> {
    /// Writes the mesh; [`Solution::finish_vtu`](crate::Solution::finish_vtu) ends the file. None with options of a file that
    /// cannot be begun.
    ///
    /// # Errors
    /// [`SolveError::Mesh`] with the path; [`femtile_mesh::MeshError::Interrupted`].
    pub fn begin(
        &self,
        path: impl AsRef<Path>,
        options: WriteOptions<'_>,
        is_interrupted: IsInterrupted<'_>,
    ) -> Result<Option<BegunFile>, SolveError> {
        let (path, missing) = (path.as_ref(), [("u", self.components)]);
        let Some(space) = &self.space else {
            return Ok(BegunFile::begin(path, self.mesh, &missing, options, is_interrupted)?);
        };
        if !BegunFile::is_for(options) {
            return Ok(None);
        }
        let even = even_points(space)?;
        let (points, cells) = (even.points(), even.cells());
        let cells =
            LagrangeCells { kind: self.mesh.kind, order: order_of(space), points: &points, cells: &cells };
        let tags = tags(self.mesh);
        let of_cells = cell_data(self.mesh, &tags);
        Ok(BegunFile::begin_lagrange(path, &cells, &of_cells, &missing, options, is_interrupted)?)
    }
}

/// Writes a solution into a file that was begun.
pub(crate) fn finish_vtu(
    file: BegunFile,
    space: Option<&TensorSpace<'_>>,
    components: &[Vec<f64>],
) -> Result<Option<FileSum>, SolveError> {
    let u = match space {
        Some(space) => part("values at points", || at_points(&even_points(space)?, components))?,
        None => scalar(&components[0]),
    };
    Ok(part("end of the file", || file.finish(&[("u", &u)]))?)
}

/// The order of the cells of a file: that of the solution or of the mesh, whichever is higher.
pub(crate) fn order_of(space: &TensorSpace<'_>) -> usize {
    space.degree().max(space.mesh().curved.as_ref().map_or(1, |curved| curved.order))
}

pub(crate) fn even_points<'a>(space: &'a TensorSpace<'a>) -> Result<EvenPoints<'a>, SolveError> {
    Ok(EvenPoints::new(space, order_of(space))?)
}

/// The values of all components at the points of a file, as one field.
pub(crate) fn at_points(even: &EvenPoints<'_>, components: &[Vec<f64>]) -> Result<Field, SolveError> {
    let values = components.iter().map(|u| even.values(u)).collect::<Result<Vec<_>, _>>()?;
    Ok(Field { n_components: components.len(), values: interleaved(values) })
}

/// The tags of cells as a field.
fn tags(mesh: &Mesh) -> Field {
    Field { n_components: 1, values: mesh.cell_tags.iter().map(|&tag| f64::from(tag)).collect() }
}

/// The fields of cells of a mesh, and their tags if it has any.
fn cell_data<'a>(mesh: &'a Mesh, tags: &'a Field) -> Vec<(&'a str, &'a Field)> {
    let own = mesh.cell_fields.iter().map(|(name, field)| (name.as_str(), field));
    own.chain((!mesh.cell_tags.is_empty()).then_some(("tag", tags))).collect()
}

/// A copy of the values at nodes, made by all threads: fresh memory costs more than the copy.
pub(crate) fn scalar(values: &[f64]) -> Field {
    Field { n_components: 1, values: parallel::map(values.len(), 1 << 14, |i| values[i]) }
}

fn write_simplices(
    path: &Path,
    (mesh, u): (&Mesh, &[f64]),
    fields: &Fields,
    options: WriteOptions<'_>,
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
    options: WriteOptions<'_>,
) -> Result<Option<FileSum>, SolveError> {
    let mesh = space.mesh();
    let even = even_points(space)?;
    let (points, cells) = part("points of the file", || (even.points(), even.cells()));
    let mut nodal = vec![("u", at_points(&even, components)?)];
    for (name, vectors) in &fields.vectors {
        let along = |axis: usize| vectors.iter().skip(axis).step_by(3).copied().collect::<Vec<f64>>();
        nodal.push((name, at_points(&even, &[0, 1, 2].map(along))?));
    }
    let tags = tags(mesh);
    let error = fields.error_estimate().map(|estimate| scalar(&estimate.cells));
    let mut cell_data = cell_data(mesh, &tags);
    cell_data.extend(error.iter().map(|field| ("error", field)));
    let point_data: Vec<(&str, &Field)> = nodal.iter().map(|(name, field)| (*name, field)).collect();
    let cells = LagrangeCells { kind: mesh.kind, order: order_of(space), points: &points, cells: &cells };
    Ok(part("file", || write_lagrange(path, &cells, &point_data, &cell_data, options))?)
}
