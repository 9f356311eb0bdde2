//! Solutions as files.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use femtile_device::{parallel, part};
use femtile_fem::recovery::ErrorEstimate;
use femtile_fem::tensor::EvenPoints;
use femtile_mesh::io::FileSum;
use femtile_mesh::io::vtu::{BegunFile, LagrangeCells, WriteOptions, write_lagrange, write_with};
use femtile_mesh::{Field, IsInterrupted, Mesh};
use femtile_space::{Element, PointMap, Space, TensorSpace};

use crate::discretization::Discretization;
use crate::right_side::interleaved;
use crate::{Fields, SolveError};

/// A function with some components at the degrees of freedom of a space.
#[derive(Debug, Clone)]
pub(crate) struct NodalField<'a> {
    pub name: Cow<'a, str>,
    pub n_components: usize,
    /// `[n_dofs][n_components]`
    pub values: Cow<'a, [f64]>,
}

/// The points and cells of a file with cells of some order, with the fields at the points.
pub(crate) struct AtPoints {
    pub order: usize,
    pub points: Vec<[f64; 3]>,
    /// As [`LagrangeCells`] has them.
    pub cells: Vec<u32>,
    pub fields: Vec<(String, Field)>,
}

/// Returns u and further fields at the degrees of freedom.
pub(crate) fn nodal_fields<'a>(components: &'a [Vec<f64>], fields: &'a Fields) -> Vec<NodalField<'a>> {
    let values = match components {
        [u] => Cow::Borrowed(&u[..]),
        several => Cow::Owned(interleaved(several.to_vec())),
    };
    let u = NodalField { name: "u".into(), n_components: components.len(), values };
    std::iter::once(u).chain(fields.at_nodes.iter().map(NodalField::view)).collect()
}

/// Writes a solution with its mesh and further fields by [`write_vtu`].
pub(crate) fn write_solution(
    path: &Path,
    (discretization, components): (&Discretization<'_>, &[Vec<f64>]),
    fields: &Fields,
    options: WriteOptions<'_>,
) -> Result<Option<FileSum>, SolveError> {
    let space = Space::of(discretization.mesh(), discretization.space())?;
    write_vtu(path, (&space, nodal_fields(components, fields)), fields.error_estimate(), options)
}

/// Writes a mesh with its tags and its fields, with fields at the degrees of freedom of a space and with errors of the cells;
/// returns the sum of the file if the options ask for it.
///
/// Cells have the degree of the space or the order of the mesh, whichever is higher.
pub(crate) fn write_vtu(
    path: &Path,
    (space, fields): (&Space<'_>, Vec<NodalField<'_>>),
    error: Option<&ErrorEstimate>,
    options: WriteOptions<'_>,
) -> Result<Option<FileSum>, SolveError> {
    let mesh = space.mesh();
    let error = error.map(|estimate| scalar(&estimate.cells));
    let errors = error.iter().map(|field| ("error", field));
    if space.is_linear() {
        let fields: Vec<(&str, Field)> = fields.iter().map(|own| (&*own.name, own.at_nodes())).collect();
        let named: Vec<(&str, &Field)> = fields.iter().map(|(name, field)| (*name, field)).collect();
        return Ok(write_with(path, mesh, &named, &errors.collect::<Vec<_>>(), options)?);
    }
    let AtPoints { order, points, cells, fields } = part("points of the file", || at_points(space, &fields))?;
    let tags = tags(mesh);
    let of_cells: Vec<(&str, &Field)> = cell_data(mesh, &tags).into_iter().chain(errors).collect();
    let named: Vec<(&str, &Field)> = fields.iter().map(|(name, field)| (name.as_str(), field)).collect();
    let cells = LagrangeCells { kind: mesh.kind, order, points: &points, cells: &cells };
    Ok(part("file", || write_lagrange(path, &cells, &named, &of_cells, options))?)
}

impl NodalField<'_> {
    /// Returns the field without a copy.
    pub fn view(&self) -> NodalField<'_> {
        let Self { name, n_components, values } = self;
        NodalField { name: Cow::Borrowed(name), n_components: *n_components, values: Cow::Borrowed(values) }
    }

    /// Returns the field of linear elements.
    pub fn at_nodes(&self) -> Field {
        Field { n_components: self.n_components, ..scalar(&self.values) }
    }
}

/// Returns the points of a file of degree above 1, or of quadrilaterals or hexahedra, with fields there.
pub(crate) fn at_points(space: &Space<'_>, fields: &[NodalField<'_>]) -> Result<AtPoints, SolveError> {
    match space.tensor() {
        Some(space) => at_points_of_boxes(space, fields),
        None => at_points_of_simplices(space, fields),
    }
}

fn at_points_of_boxes(space: &TensorSpace<'_>, fields: &[NodalField<'_>]) -> Result<AtPoints, SolveError> {
    let even = even_points(space)?;
    let at_even = |NodalField { name, n_components: n, values }: &NodalField<'_>| {
        let field = match n {
            1 => Field { n_components: 1, values: even.values(values)? },
            _ => {
                let component = |c: usize| values.iter().skip(c).step_by(*n).copied().collect();
                components_at(&even, &(0..*n).map(component).collect::<Vec<_>>())?
            }
        };
        Ok::<_, SolveError>((name.to_string(), field))
    };
    let fields = fields.iter().map(at_even).collect::<Result<_, _>>()?;
    Ok(AtPoints { order: order_of(space), points: even.points(), cells: even.cells(), fields })
}

/// Returns the evenly spaced points of triangles or tetrahedra; each has the number of the degree of freedom in its place.
fn at_points_of_simplices(space: &Space<'_>, fields: &[NodalField<'_>]) -> Result<AtPoints, SolveError> {
    let (mesh, element, order) = (space.mesh(), space.element(), space.element().degree());
    let even = Element::evenly_spaced(mesh.kind, order)?;
    let (table, mapping) = (element.tabulate(even.nodes()), space.mapping(even.nodes()));
    // Nodes in the order of a file, by their coordinates.
    let mut in_file: Vec<usize> = (0..even.n_dofs()).collect();
    let key = |&node: &usize| even.nodes()[node].map(|x| (x * order as f64).round() as usize);
    in_file.sort_by_key(|node| {
        let [i, j, k] = key(node);
        [k, j, i]
    });
    let mut values: Vec<Vec<f64>> = fields.iter().map(|field| field.values.to_vec()).collect();
    let mut points = mesh.points.clone();
    points.resize(space.n_dofs(), [0.0; 3]);
    let mut cells = Vec::with_capacity(mesh.n_cells() * even.n_dofs());
    let (mut map, mut dofs) = (PointMap::default(), vec![0; element.n_dofs()]);
    for position in 0..space.n_cells() {
        mapping.of_cell(position, &mut map)?;
        space.cell_dofs(position, &mut dofs);
        cells.extend(in_file.iter().map(|&node| dofs[node]));
        // Corners keep their values.
        for node in mesh.kind.n_nodes()..even.n_dofs() {
            let (own, shapes) = (dofs[node] as usize, table.values(node));
            points[own] = map.points[node];
            for (field, at) in fields.iter().zip(&mut values) {
                let n = field.n_components;
                for (c, at) in at[own * n..][..n].iter_mut().enumerate() {
                    let terms = dofs.iter().zip(shapes);
                    *at = terms.map(|(&dof, shape)| shape * field.values[dof as usize * n + c]).sum();
                }
            }
        }
    }
    let named = |(field, values): (&NodalField<'_>, Vec<f64>)| {
        (field.name.to_string(), Field { n_components: field.n_components, values })
    };
    let fields = fields.iter().zip(values).map(named).collect();
    Ok(AtPoints { order, points, cells, fields })
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
        Some(space) => part("values at points", || components_at(&even_points(space)?, components))?,
        None => scalar(&components[0]),
    };
    Ok(part("end of the file", || file.finish(&[("u", &u)]))?)
}

/// The order of the cells of a file: that of the solution or of the mesh, whichever is higher.
fn order_of(space: &TensorSpace<'_>) -> usize {
    space.degree().max(space.mesh().curved.as_ref().map_or(1, |curved| curved.order))
}

fn even_points<'a>(space: &'a TensorSpace<'a>) -> Result<EvenPoints<'a>, SolveError> {
    Ok(EvenPoints::new(space, order_of(space))?)
}

/// Returns the values of all components at the points of a file, as one field.
fn components_at(even: &EvenPoints<'_>, components: &[Vec<f64>]) -> Result<Field, SolveError> {
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
