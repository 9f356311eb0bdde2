//! Continuous piecewise polynomials on any mesh of triangles, tetrahedra, quadrilaterals or hexahedra.

mod facets;
pub(crate) mod locate;
mod map;
pub(crate) mod nearest;
mod simplex_numbering;
#[cfg(test)]
mod tests;

use femtile_mesh::Mesh;

use crate::{Element, SpaceError, TensorSpace};
pub use facets::{CellFacet, FacetMap};
pub use locate::CellPoint;
pub use map::{CellMapping, PointMap};
pub use nearest::Foot;
use simplex_numbering::SimplexNumbering;

/// The space of continuous functions that are polynomials of an [`Element`] on each cell of a mesh.
///
/// Degrees of freedom are values at the nodes of the cells. On simplices those of vertices have the numbers of the nodes of
/// the mesh; edges, faces and interiors follow. Quadrilaterals and hexahedra are those of a [`TensorSpace`], which visits cells
/// along a space-filling curve and may turn their axes.
///
/// The integral of a function over the unit square:
///
/// ```
/// use femtile_mesh::generate::{SquareConfig, square};
/// use femtile_space::{PointMap, Space};
///
/// let mesh = square(&SquareConfig::default())?;
/// let space = Space::new(&mesh, 3)?;
/// let element = space.element();
/// let rule = element.quadrature(3);
/// let (table, mapping) = (element.tabulate(&rule.points), space.mapping(&rule.points));
/// let u = vec![2.0; space.n_dofs()];
/// let (mut map, mut dofs, mut integral) = (PointMap::default(), vec![0; element.n_dofs()], 0.0);
/// for position in 0..space.n_cells() {
///     mapping.of_cell(position, &mut map)?;
///     space.cell_dofs(position, &mut dofs);
///     for q in 0..rule.n_q() {
///         let value: f64 = dofs.iter().zip(table.values(q)).map(|(&dof, shape)| shape * u[dof as usize]).sum();
///         integral += rule.weights[q] * map.determinants[q].abs() * value;
///     }
/// }
/// assert!((integral - 2.0).abs() < 1e-12);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Space<'a> {
    mesh: &'a Mesh,
    element: Element,
    numbering: Numbering<'a>,
    is_axisymmetric: bool,
}

/// The numbers of the degrees of freedom of each cell.
#[derive(Debug, Clone)]
enum Numbering<'a> {
    Simplex(SimplexNumbering),
    Tensor(TensorSpace<'a>),
    /// That of a space which others have.
    Borrowed(&'a TensorSpace<'a>),
}

impl<'a> From<&'a TensorSpace<'a>> for Space<'a> {
    /// Returns the space without copying its numbers.
    fn from(space: &'a TensorSpace<'a>) -> Self {
        let element = Element::of_polynomials(space.mesh().kind, space.shapes());
        Self { mesh: space.mesh(), element, numbering: Numbering::Borrowed(space), is_axisymmetric: false }
    }
}

impl<'a> Space<'a> {
    /// Creates the space of a degree on a mesh.
    ///
    /// # Cost
    /// Sorts the edges and faces of all cells, 16 bytes each; degree 1 on simplices stores nothing.
    /// # Errors
    /// As [`Element::new`]; [`SpaceError::TooManyDofs`] if they cannot be numbered with 32 bits.
    pub fn new(mesh: &'a Mesh, degree: usize) -> Result<Self, SpaceError> {
        let element = Element::new(mesh.kind, degree)?;
        let numbering = if mesh.kind.is_simplex() {
            Numbering::Simplex(SimplexNumbering::new(mesh, degree)?)
        } else {
            Numbering::Tensor(TensorSpace::on_any_mesh(mesh, degree)?)
        };
        Ok(Self { mesh, element, numbering, is_axisymmetric: false })
    }

    /// Makes the plane the half section of a body of revolution, where x is the distance from the axis: integrals of functionals
    /// then have the weight 2πx.
    #[must_use]
    pub fn axisymmetric(mut self, is_axisymmetric: bool) -> Self {
        self.is_axisymmetric = is_axisymmetric;
        self
    }

    /// Returns whether the plane is the half section of a body of revolution.
    pub fn is_axisymmetric(&self) -> bool {
        self.is_axisymmetric
    }

    /// Returns the space that a tensor space is; without one, that of degree 1 on the mesh.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of(mesh: &'a Mesh, tensor: Option<&'a TensorSpace<'a>>) -> Result<Self, SpaceError> {
        tensor.map_or_else(|| Self::new(mesh, 1), |space| Ok(Self::from(space)))
    }

    /// Returns the mesh.
    pub fn mesh(&self) -> &'a Mesh {
        self.mesh
    }

    /// Returns the element of all cells.
    pub fn element(&self) -> &Element {
        &self.element
    }

    /// Returns whether functions are linear in each cell: triangles and tetrahedra of degree 1, whose degrees of freedom are the
    /// nodes of the mesh.
    pub fn is_linear(&self) -> bool {
        self.tensor().is_none() && self.element().degree() == 1
    }

    /// Returns the tensor-product space of quadrilaterals or hexahedra.
    pub fn tensor(&self) -> Option<&TensorSpace<'a>> {
        match &self.numbering {
            Numbering::Simplex(_) => None,
            Numbering::Tensor(space) => Some(space),
            Numbering::Borrowed(space) => Some(space),
        }
    }

    /// Returns the number of degrees of freedom.
    pub fn n_dofs(&self) -> usize {
        match &self.numbering {
            Numbering::Simplex(numbering) => numbering.n_dofs(),
            Numbering::Tensor(space) => space.n_dofs(),
            Numbering::Borrowed(space) => space.n_dofs(),
        }
    }

    /// Returns the number of cells.
    pub fn n_cells(&self) -> usize {
        self.mesh.n_cells()
    }

    /// Returns the cell of the mesh at a position in the order of visits.
    pub fn cell(&self, position: usize) -> usize {
        self.tensor().map_or(position, |space| space.order()[position] as usize)
    }

    /// Returns the nodes of the mesh at the corners of the cell at a position, in the order of the corners of the element.
    pub fn corners(&self, position: usize) -> &[u32] {
        self.tensor().map_or_else(|| self.mesh.cell(position), |space| space.corners(position))
    }

    /// Returns the corner nodes of all cells: `[n_cells][corners]`.
    fn all_corners(&self) -> &[u32] {
        self.tensor().map_or(&self.mesh.cells, TensorSpace::all_corners)
    }

    /// Writes the degrees of freedom of the cell at a position, in the order of the nodes of the element.
    ///
    /// # Panics
    /// Unless `dofs` has one entry per node of the element.
    pub fn cell_dofs(&self, position: usize, dofs: &mut [u32]) {
        match &self.numbering {
            Numbering::Simplex(numbering) => numbering.cell_dofs(self.mesh, position, dofs),
            Numbering::Tensor(space) => space.cell_dofs(position, dofs),
            Numbering::Borrowed(space) => space.cell_dofs(position, dofs),
        }
    }
}
