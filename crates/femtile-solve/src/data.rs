//! Solutions in memory, with the mesh and the fields that their files have.

use std::collections::BTreeMap;
use std::path::Path;

use femtile_fem::recovery::ErrorEstimate;
use femtile_mesh::io::vtu::{LagrangeCells, WriteOptions, lattice, write, write_lagrange};
use femtile_mesh::{CellKind, Field, Mesh};
use femtile_space::Space;

use crate::discretization::Discretization;
use crate::output::{AtPoints, NodalField, at_points, nodal_fields, scalar};
use crate::{Fields, SolveError};

/// A solution with its mesh, as its file for ParaView has it.
#[derive(Debug, Clone, PartialEq)]
pub struct SolutionData {
    /// Kind of all cells.
    pub kind: CellKind,
    /// Degree of the cells, in each coordinate of quadrilaterals and hexahedra; 1 for straight ones.
    pub order: usize,
    /// Coordinates of the points; of linear elements these are the nodes of the mesh.
    pub points: Vec<[f64; 3]>,
    /// Points of each cell in the order of VTK: `[n_cells × points of a cell]`.
    pub cells: Vec<u32>,
    /// Tags of cells, or empty.
    pub cell_tags: Vec<i32>,
    /// Fields with an entry a point, `u` among them.
    pub point_fields: BTreeMap<String, Field>,
    /// Fields with an entry a cell.
    pub cell_fields: BTreeMap<String, Field>,
}

impl SolutionData {
    /// Returns the number of points of a cell.
    pub fn points_per_cell(&self) -> usize {
        LagrangeCells { kind: self.kind, order: self.order, points: &[], cells: &[] }.points_per_cell()
    }

    /// Writes the solution as a VTU file, with tags of cells as the cell field `tag`.
    ///
    /// # Errors
    /// [`SolveError::Mesh`] with the path, and for fields that do not fit.
    pub fn write_vtu(&self, path: impl AsRef<Path>) -> Result<(), SolveError> {
        let (path, kind, order) = (path.as_ref(), self.kind, self.order);
        let (at_points, mut of_cells) = (named(&self.point_fields), named(&self.cell_fields));
        if order == 1 {
            let mut mesh = Mesh::new(self.points.clone(), kind, self.cells.clone())?;
            mesh.cell_tags.clone_from(&self.cell_tags);
            return Ok(write(path, &mesh, &at_points, &of_cells)?);
        }
        let values = self.cell_tags.iter().map(|&tag| f64::from(tag)).collect();
        let tags = Field { n_components: 1, values };
        if !self.cell_tags.is_empty() {
            of_cells.push(("tag", &tags));
        }
        let lattice = lattice(kind, order)?;
        let mut in_file: Vec<usize> = (0..lattice.len()).collect();
        in_file.sort_by_key(|&place| {
            let [i, j, k] = lattice[place];
            [k, j, i]
        });
        let of_vtk = self.cells.chunks(lattice.len());
        let cells: Vec<u32> = of_vtk.flat_map(|cell| in_file.iter().map(|&place| cell[place])).collect();
        let cells = LagrangeCells { kind, order, points: &self.points, cells: &cells };
        write_lagrange(path, &cells, &at_points, &of_cells, WriteOptions::default())?;
        Ok(())
    }

    /// Creates data of linear elements: `fields` at nodes, in addition to those of the mesh.
    pub fn at_nodes(
        mesh: &Mesh,
        fields: impl IntoIterator<Item = (String, Field)>,
        of_cells: impl IntoIterator<Item = (String, Field)>,
    ) -> Self {
        Self {
            kind: mesh.kind,
            order: 1,
            points: mesh.points.clone(),
            cells: mesh.cells.clone(),
            cell_tags: mesh.cell_tags.clone(),
            point_fields: mesh.node_fields.clone().into_iter().chain(fields).collect(),
            cell_fields: mesh.cell_fields.clone().into_iter().chain(of_cells).collect(),
        }
    }

    /// Creates data of values on a grid of points, the first axis fastest; the axes that have more than one point come
    /// first.
    pub fn on_grid(
        nodes: [usize; 3],
        lower: [f64; 3],
        spacing: [f64; 3],
        name: &str,
        values: Vec<f64>,
    ) -> Self {
        let dimension = nodes.iter().rposition(|n| *n > 1).map_or(1, |axis| axis + 1);
        let kind = [CellKind::Segment, CellKind::Quadrilateral, CellKind::Hexahedron][dimension - 1];
        let [nx, ny, nz] = nodes;
        let indices = |n: [usize; 3]| {
            (0..n[2]).flat_map(move |k| (0..n[1]).flat_map(move |j| (0..n[0]).map(move |i| [i, j, k])))
        };
        let point =
            |at: [usize; 3]| std::array::from_fn(|axis| lower[axis] + at[axis] as f64 * spacing[axis]);
        let number = |[i, j, k]: [usize; 3]| (i + nx * (j + ny * k)) as u32;
        // Corners of a cell in the order of VTK.
        let corners =
            [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]];
        let corners = &corners[..kind.n_nodes()];
        let intervals = [nx, ny, nz].map(|n| n.saturating_sub(1));
        let intervals = std::array::from_fn(|axis| if axis < dimension { intervals[axis] } else { 1 });
        let of_cell =
            |at: [usize; 3]| corners.iter().map(move |c| number([at[0] + c[0], at[1] + c[1], at[2] + c[2]]));
        Self {
            kind,
            order: 1,
            points: indices(nodes).map(point).collect(),
            cells: indices(intervals).flat_map(of_cell).collect(),
            cell_tags: Vec::new(),
            point_fields: BTreeMap::from([(name.into(), Field { n_components: 1, values })]),
            cell_fields: BTreeMap::new(),
        }
    }

    /// Creates the data of components, with fields computed from them.
    pub(crate) fn of_components(
        discretization: &Discretization<'_>,
        components: &[Vec<f64>],
        fields: &Fields,
    ) -> Result<Self, SolveError> {
        let space = Space::of(discretization.mesh(), discretization.space())?;
        Self::of_fields(&space, &nodal_fields(components, fields), fields.error_estimate())
    }

    /// Creates the data of fields on a space, with errors of the cells.
    pub(crate) fn of_fields(
        space: &Space<'_>,
        fields: &[NodalField<'_>],
        error: Option<&ErrorEstimate>,
    ) -> Result<Self, SolveError> {
        let (mesh, kind) = (space.mesh(), space.mesh().kind);
        let errors = error.map(|estimate| ("error".into(), scalar(&estimate.cells)));
        if space.is_linear() {
            let fields = fields.iter().map(|field| (field.name.to_string(), field.at_nodes()));
            return Ok(Self::at_nodes(mesh, fields, errors));
        }
        let AtPoints { order, points, cells, fields } = at_points(space, fields)?;
        let cells = LagrangeCells { kind, order, points: &points, cells: &cells }.in_vtk_order();
        let cell_fields = mesh.cell_fields.clone().into_iter().chain(errors).collect();
        let (cell_tags, point_fields) = (mesh.cell_tags.clone(), fields.into_iter().collect());
        Ok(Self { kind, order, points, cells, cell_tags, point_fields, cell_fields })
    }
}

/// Returns fields with their names.
fn named(fields: &BTreeMap<String, Field>) -> Vec<(&str, &Field)> {
    fields.iter().map(|(name, field)| (name.as_str(), field)).collect()
}

#[cfg(test)]
mod tests {
    use femtile_mesh::generate::{SquareConfig, SquareSplit, square};

    use super::*;
    use crate::{Poisson, SolverConfig};

    #[test]
    fn a_linear_function_has_its_values_at_the_points_of_any_degree() {
        for (split, degree) in
            [(SquareSplit::Triangles, 1), (SquareSplit::Quadrilateral, 1), (SquareSplit::Quadrilateral, 3)]
        {
            let config = SquareConfig { cells: [3, 2], split, ..SquareConfig::default() };
            let mesh = square(&config).unwrap();
            let problem = Poisson::new(&mesh).degree(degree).dirichlet("all", "x + 2*y").unwrap();
            let data = problem.solve(&SolverConfig::default()).unwrap().data(&Fields::default()).unwrap();
            let per_cell = if split == SquareSplit::Triangles { 3 } else { (degree + 1) * (degree + 1) };
            assert_eq!((data.order, data.cells.len()), (degree, mesh.n_cells() * per_cell));
            for ([x, y, _], u) in data.points.iter().zip(&data.point_fields["u"].values) {
                assert!((u - x - 2.0 * y).abs() < 1e-8);
            }
        }
    }

    #[test]
    fn cells_of_a_grid_have_their_corners_in_the_order_of_vtk() {
        let data = SolutionData::on_grid([3, 2, 1], [0.0; 3], [0.5, 1.0, 1.0], "u", vec![0.0; 6]);
        assert_eq!((data.kind, data.cells), (CellKind::Quadrilateral, vec![0, 1, 4, 3, 1, 2, 5, 4]));
        assert_eq!(data.points[5], [1.0, 1.0, 0.0]);
        let line = SolutionData::on_grid([3, 1, 1], [0.0; 3], [0.5; 3], "u", vec![0.0; 3]);
        assert_eq!((line.kind, line.cells), (CellKind::Segment, vec![0, 1, 1, 2]));
        let cube = SolutionData::on_grid([2; 3], [0.0; 3], [1.0; 3], "u", vec![0.0; 8]);
        assert_eq!(cube.cells, [0, 1, 3, 2, 4, 5, 7, 6]);
    }
}
