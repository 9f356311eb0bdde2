//! Files and data of the solution of a form: u, and of elasticity the stresses.

use std::path::Path;

use femtile_mesh::Field;
use femtile_mesh::io::FileSum;
use femtile_mesh::io::vtu::{LagrangeCells, WriteOptions, write_lagrange, write_with};
use femtile_space::TensorSpace;

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

impl NodalField {
    /// Returns it at the points of a file: of simplices the nodes of the mesh, which are the first degrees of freedom.
    fn at_nodes(self, n_nodes: usize) -> (String, Field) {
        let Self { name, n_components, mut values } = self;
        values.truncate(n_nodes * n_components);
        (name.to_owned(), Field { n_components, values })
    }

    fn at_points_of(self, even: &femtile_fem::tensor::EvenPoints<'_>) -> Result<(String, Field), SolveError> {
        let component = |c: usize| self.values.iter().skip(c).step_by(self.n_components).copied().collect();
        let components: Vec<Vec<f64>> = (0..self.n_components).map(component).collect();
        Ok((self.name.to_owned(), at_points(even, &components)?))
    }
}

/// The points and cells of a file of quadrilaterals or hexahedra, with the fields at the points.
struct AtEvenPoints {
    points: Vec<[f64; 3]>,
    cells: Vec<u32>,
    fields: Vec<(String, Field)>,
}

impl FormSolution<'_> {
    /// Writes the mesh, u and, of elasticity, `stress` and `von_mises` as a VTU file; returns the sum of the file if the options
    /// ask for it.
    ///
    /// Vectors have three components. Quadrilaterals and hexahedra have the degree of the solution, triangles and tetrahedra
    /// the values at their corners.
    ///
    /// # Errors
    /// [`SolveError::Mesh`] with the path.
    pub fn write_vtu(
        &self,
        path: impl AsRef<Path>,
        options: WriteOptions<'_>,
    ) -> Result<Option<FileSum>, SolveError> {
        let (path, mesh) = (path.as_ref(), self.space.mesh());
        let Some(space) = self.space.tensor() else {
            let fields = self.fields_at_nodes()?;
            let named: Vec<(&str, &Field)> = fields.iter().map(|(name, field)| (&**name, field)).collect();
            return Ok(write_with(path, mesh, &named, &[], options)?);
        };
        let AtEvenPoints { points, cells, fields } = self.at_even_points(space)?;
        let named: Vec<(&str, &Field)> = fields.iter().map(|(name, field)| (&**name, field)).collect();
        let tags =
            Field { n_components: 1, values: mesh.cell_tags.iter().map(|&tag| f64::from(tag)).collect() };
        let mut of_cells: Vec<(&str, &Field)> =
            mesh.cell_fields.iter().map(|(name, field)| (&**name, field)).collect();
        if !mesh.cell_tags.is_empty() {
            of_cells.push(("tag", &tags));
        }
        let cells = LagrangeCells { kind: mesh.kind, order: order_of(space), points: &points, cells: &cells };
        Ok(write_lagrange(path, &cells, &named, &of_cells, options)?)
    }

    /// Returns the solution with its mesh, as its file has it.
    ///
    /// # Errors
    /// [`SolveError::Fem`] for degenerate cells.
    pub fn data(&self) -> Result<SolutionData, SolveError> {
        let mesh = self.space.mesh();
        let Some(space) = self.space.tensor() else {
            return Ok(SolutionData::at_nodes(mesh, self.fields_at_nodes()?, []));
        };
        let AtEvenPoints { points, cells, fields } = self.at_even_points(space)?;
        let (kind, order) = (mesh.kind, order_of(space));
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

    fn fields_at_nodes(&self) -> Result<Vec<(String, Field)>, SolveError> {
        let n_nodes = self.space.mesh().n_nodes();
        Ok(self.fields()?.into_iter().map(|field| field.at_nodes(n_nodes)).collect())
    }

    fn at_even_points(&self, space: &TensorSpace<'_>) -> Result<AtEvenPoints, SolveError> {
        let even = even_points(space)?;
        let fields = self.fields()?.into_iter().map(|field| field.at_points_of(&even));
        let fields = fields.collect::<Result<_, _>>()?;
        Ok(AtEvenPoints { points: even.points(), cells: even.cells(), fields })
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
