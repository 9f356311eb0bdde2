//! Files and data of the solution of a form: u, and of elasticity the stresses.

use std::path::Path;

use femtile_mesh::Field;
use femtile_mesh::io::FileSum;
use femtile_mesh::io::vtu::{LagrangeCells, WriteOptions, write_lagrange, write_with};
use femtile_space::{Element, PointMap, TensorSpace};

use super::FormSolution;
use crate::output::{at_points, even_points, order_of};
use crate::{SolutionData, SolveError};

/// A function with some components at the degrees of freedom of the space.
struct NodalField {
    name: &'static str,
    n_components: usize,
    /// `[n_dofs][n_components]`
    values: Vec<f64>,
}

/// The points and cells of a file with cells of some order, with the fields at the points.
struct AtPoints {
    order: usize,
    points: Vec<[f64; 3]>,
    /// As [`LagrangeCells`] has them.
    cells: Vec<u32>,
    fields: Vec<(String, Field)>,
}

impl FormSolution<'_> {
    /// Writes the mesh, u and, of elasticity, `stress` and `von_mises` as a VTU file; returns the sum of the file if the options
    /// ask for it.
    ///
    /// Cells have the degree of the solution or the order of the mesh, whichever is higher; vectors have three components.
    ///
    /// # Errors
    /// [`SolveError::Mesh`] with the path.
    pub fn write_vtu(
        &self,
        path: impl AsRef<Path>,
        options: WriteOptions<'_>,
    ) -> Result<Option<FileSum>, SolveError> {
        let (path, mesh) = (path.as_ref(), self.space.mesh());
        if self.is_linear() {
            let fields = self.fields_at_nodes()?;
            let named: Vec<(&str, &Field)> = fields.iter().map(|(name, field)| (&**name, field)).collect();
            return Ok(write_with(path, mesh, &named, &[], options)?);
        }
        let AtPoints { order, points, cells, fields } = self.at_points()?;
        let named: Vec<(&str, &Field)> = fields.iter().map(|(name, field)| (&**name, field)).collect();
        let tags =
            Field { n_components: 1, values: mesh.cell_tags.iter().map(|&tag| f64::from(tag)).collect() };
        let mut of_cells: Vec<(&str, &Field)> =
            mesh.cell_fields.iter().map(|(name, field)| (&**name, field)).collect();
        if !mesh.cell_tags.is_empty() {
            of_cells.push(("tag", &tags));
        }
        let cells = LagrangeCells { kind: mesh.kind, order, points: &points, cells: &cells };
        Ok(write_lagrange(path, &cells, &named, &of_cells, options)?)
    }

    /// Returns the solution with its mesh, as its file has it.
    ///
    /// # Errors
    /// [`SolveError::Fem`] for degenerate cells.
    pub fn data(&self) -> Result<SolutionData, SolveError> {
        let mesh = self.space.mesh();
        if self.is_linear() {
            return Ok(SolutionData::at_nodes(mesh, self.fields_at_nodes()?, []));
        }
        let (kind, AtPoints { order, points, cells, fields }) = (mesh.kind, self.at_points()?);
        let cells = LagrangeCells { kind, order, points: &points, cells: &cells }.in_vtk_order();
        Ok(SolutionData {
            kind,
            order,
            points,
            cells,
            cell_tags: mesh.cell_tags.clone(),
            point_fields: fields.into_iter().collect(),
            cell_fields: mesh.cell_fields.clone(),
        })
    }

    /// Returns whether the degrees of freedom are the nodes of the mesh.
    fn is_linear(&self) -> bool {
        self.space.tensor().is_none() && self.space.element().degree() == 1
    }

    fn fields_at_nodes(&self) -> Result<Vec<(String, Field)>, SolveError> {
        let named = |field: NodalField| {
            let NodalField { name, n_components, values } = field;
            (name.to_owned(), Field { n_components, values })
        };
        Ok(self.fields()?.into_iter().map(named).collect())
    }

    fn at_points(&self) -> Result<AtPoints, SolveError> {
        match self.space.tensor() {
            Some(space) => self.at_points_of_boxes(space),
            None => self.at_points_of_simplices(),
        }
    }

    fn at_points_of_boxes(&self, space: &TensorSpace<'_>) -> Result<AtPoints, SolveError> {
        let even = even_points(space)?;
        let at_even = |field: NodalField| {
            let NodalField { name, n_components: n, values } = field;
            let component = |c: usize| values.iter().skip(c).step_by(n).copied().collect();
            let components: Vec<Vec<f64>> = (0..n).map(component).collect();
            Ok((name.to_owned(), at_points(&even, &components)?))
        };
        let fields = self.fields()?.into_iter().map(at_even).collect::<Result<_, SolveError>>()?;
        Ok(AtPoints { order: order_of(space), points: even.points(), cells: even.cells(), fields })
    }

    /// Returns the evenly spaced points of triangles or tetrahedra; each has the number of the degree of freedom in its place.
    fn at_points_of_simplices(&self) -> Result<AtPoints, SolveError> {
        let (space, mesh) = (&self.space, self.space.mesh());
        let (element, order) = (space.element(), space.element().degree());
        let even = Element::evenly_spaced(mesh.kind, order)?;
        let (table, mapping) = (element.tabulate(even.nodes()), space.mapping(even.nodes()));
        // Nodes in the order of a file, by their coordinates.
        let mut in_file: Vec<usize> = (0..even.n_dofs()).collect();
        let key = |&node: &usize| even.nodes()[node].map(|x| (x * order as f64).round() as usize);
        in_file.sort_by_key(|node| {
            let [i, j, k] = key(node);
            [k, j, i]
        });

        let of_dofs = self.fields()?;
        let mut values: Vec<Vec<f64>> = of_dofs.iter().map(|field| field.values.clone()).collect();
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
                for (field, at) in of_dofs.iter().zip(&mut values) {
                    let n = field.n_components;
                    for (c, at) in at[own * n..][..n].iter_mut().enumerate() {
                        let terms = dofs.iter().zip(shapes);
                        *at = terms.map(|(&dof, shape)| shape * field.values[dof as usize * n + c]).sum();
                    }
                }
            }
        }
        let named = |(field, values): (&NodalField, Vec<f64>)| {
            (field.name.to_owned(), Field { n_components: field.n_components, values })
        };
        let fields = of_dofs.iter().zip(values).map(named).collect();
        Ok(AtPoints { order, points, cells, fields })
    }

    /// Returns u, and the stresses of elasticity.
    fn fields(&self) -> Result<Vec<NodalField>, SolveError> {
        let n = self.n_components();
        let values = match n {
            2 => self.u.chunks_exact(2).flat_map(|u| [u[0], u[1], 0.0]).collect(),
            _ => self.u.clone(),
        };
        let mut fields = vec![NodalField { name: "u", n_components: if n == 2 { 3 } else { n }, values }];
        if let Some(stress) = self.stress()? {
            fields.push(NodalField { name: "stress", n_components: 6, values: stress.tensor });
            fields.push(NodalField { name: "von_mises", n_components: 1, values: stress.von_mises });
        }
        Ok(fields)
    }
}
