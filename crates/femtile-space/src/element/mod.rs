//! Reference elements: nodes, shape functions, facets and quadrature of each kind of cell.

mod facets;
mod map;
mod nodes;
mod quadrature;
mod simplex;
#[cfg(test)]
mod tests;

use femtile_element::tensor::Lagrange;
use femtile_mesh::CellKind;

use crate::{MAX_DEGREE, SpaceError};
pub use facets::ElementFacet;
pub(crate) use facets::{FacetAxes, corner, corners_of_facets};
pub(crate) use map::TOLERANCE;
pub(crate) use nodes::{Lattice, lattice};
pub use quadrature::ReferenceRule;
use simplex::SimplexBasis;

/// The highest degree of elements on triangles and tetrahedra.
pub const MAX_SIMPLEX_DEGREE: usize = 6;

/// The Lagrange element of a degree on a reference cell.
///
/// A simplex has the corners $0, e_1, …, e_d$ and polynomials of total degree p; its nodes are those of the vertices, edges,
/// faces and the interior, in this order. A square or cube is $[0, 1]^d$ with polynomials of degree p in each coordinate; its
/// corners and nodes run along the first axis fastest. Nodes on edges are Gauss–Lobatto points.
#[derive(Debug, Clone)]
pub struct Element {
    kind: CellKind,
    degree: usize,
    nodes: Vec<[f64; 3]>,
    facets: Vec<ElementFacet>,
    shapes: Shapes,
}

/// The shape functions of an element.
#[derive(Debug, Clone)]
enum Shapes {
    Simplex(SimplexBasis),
    /// Products of polynomials along each axis.
    Tensor(Lagrange),
}

/// Shape functions and their gradients at points of the reference cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tabulation {
    /// Number of shape functions.
    pub n_dofs: usize,
    /// Values: `[n_points][n_dofs]`.
    pub values: Vec<f64>,
    /// Gradients in reference coordinates, zero along axes that the cell lacks: `[n_points][n_dofs]`.
    pub gradients: Vec<[f64; 3]>,
}

impl Tabulation {
    /// Returns the number of points.
    pub fn n_points(&self) -> usize {
        self.values.len() / self.n_dofs.max(1)
    }

    /// Returns the values at a point: `[n_dofs]`.
    pub fn values(&self, point: usize) -> &[f64] {
        &self.values[point * self.n_dofs..][..self.n_dofs]
    }

    /// Returns the gradients at a point: `[n_dofs]`.
    pub fn gradients(&self, point: usize) -> &[[f64; 3]] {
        &self.gradients[point * self.n_dofs..][..self.n_dofs]
    }
}

impl Element {
    /// Creates the element of a degree on triangles, tetrahedra, quadrilaterals or hexahedra.
    ///
    /// # Cost
    /// Inverts a matrix of [`Self::n_dofs`] rows on simplices.
    /// # Errors
    /// [`SpaceError::NoElement`] for other cells, [`SpaceError::Degree`] for a degree that is not between 1 and
    /// [`MAX_SIMPLEX_DEGREE`] or [`MAX_DEGREE`].
    pub fn new(kind: CellKind, degree: usize) -> Result<Self, SpaceError> {
        Self::with_nodes(kind, degree, nodes::recursive, Lagrange::gauss_lobatto)
    }

    /// Creates the element with evenly spaced nodes, as files have them.
    ///
    /// A node lies in the same vertex, edge, face or interior as that of [`Self::new`] with its number.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn evenly_spaced(kind: CellKind, degree: usize) -> Result<Self, SpaceError> {
        let even = |degree: usize| Lagrange::new((0..=degree).map(|i| i as f64 / degree as f64).collect());
        Self::with_nodes(kind, degree, nodes::evenly_spaced, even)
    }

    fn with_nodes(
        kind: CellKind,
        degree: usize,
        node: fn(&[usize]) -> [f64; 3],
        polynomials: fn(usize) -> Lagrange,
    ) -> Result<Self, SpaceError> {
        let highest = if kind.is_simplex() { MAX_SIMPLEX_DEGREE } else { MAX_DEGREE };
        if kind == CellKind::Segment {
            return Err(SpaceError::NoElement { kind });
        }
        if !(1..=highest).contains(&degree) {
            return Err(SpaceError::Degree { degree, kind, highest });
        }
        if !kind.is_simplex() {
            return Ok(Self::of_polynomials(kind, polynomials(degree)));
        }
        Ok(Self::of_simplex(kind, degree, node))
    }

    fn of_simplex(kind: CellKind, degree: usize, node: fn(&[usize]) -> [f64; 3]) -> Self {
        let d = kind.dimension();
        let nodes: Vec<[f64; 3]> = lattice(d, degree).iter().map(|at| node(&at.indices[..=d])).collect();
        let shapes = Shapes::Simplex(SimplexBasis::new(d, degree, &nodes));
        Self::with_facets(kind, degree, nodes, shapes)
    }

    /// Creates the element of linear functions on a simplex.
    pub(crate) fn linear_simplex(kind: CellKind) -> Self {
        Self::of_simplex(kind, 1, nodes::evenly_spaced)
    }

    /// Creates the element of products of these polynomials on a square or cube.
    pub(crate) fn of_polynomials(kind: CellKind, polynomials: Lagrange) -> Self {
        let (ticks, d) = (polynomials.nodes(), kind.dimension());
        let n = ticks.len();
        let node = |at: usize| {
            std::array::from_fn(|axis| if axis < d { ticks[at / n.pow(axis as u32) % n] } else { 0.0 })
        };
        let nodes = (0..n.pow(d as u32)).map(node).collect();
        Self::with_facets(kind, n - 1, nodes, Shapes::Tensor(polynomials))
    }

    fn with_facets(kind: CellKind, degree: usize, nodes: Vec<[f64; 3]>, shapes: Shapes) -> Self {
        let facets = facets::of_cell(kind, &nodes);
        Self { kind, degree, nodes, facets, shapes }
    }

    /// Returns the kind of the cell.
    pub fn kind(&self) -> CellKind {
        self.kind
    }

    /// Returns the degree of the polynomials: the total one on simplices, that in each coordinate otherwise.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Returns the dimension of the cell: 2 or 3.
    pub fn dimension(&self) -> usize {
        self.kind.dimension()
    }

    /// Returns the number of degrees of freedom, one per node.
    pub fn n_dofs(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the nodes.
    pub fn nodes(&self) -> &[[f64; 3]] {
        &self.nodes
    }

    /// Returns the facets: those of [`CellKind::facets`] in their order on simplices, otherwise the lower and the upper end of
    /// each axis.
    pub fn facets(&self) -> &[ElementFacet] {
        &self.facets
    }

    /// Evaluates all shape functions and their gradients at points of the reference cell.
    ///
    /// # Cost
    /// $O(n^2)$ per point for `n` shape functions on simplices.
    pub fn tabulate(&self, points: &[[f64; 3]]) -> Tabulation {
        match &self.shapes {
            Shapes::Simplex(basis) => basis.tabulate(points),
            Shapes::Tensor(polynomials) => products(polynomials, self.dimension(), points),
        }
    }

    /// Evaluates some shape functions at points of the reference cell: `[n_points][n]` for n of them.
    ///
    /// # Cost
    /// That of all functions on simplices; $d n$ products per point otherwise.
    pub(crate) fn values_of(&self, dofs: &[usize], points: &[[f64; 3]]) -> Vec<f64> {
        let mut found = Vec::with_capacity(points.len() * dofs.len());
        match &self.shapes {
            Shapes::Simplex(basis) => {
                let table = basis.tabulate(points);
                let values = |point: usize| dofs.iter().map(move |&dof| (point, dof));
                let all = (0..points.len()).flat_map(values);
                found.extend(all.map(|(point, dof)| table.values(point)[dof]));
            }
            Shapes::Tensor(polynomials) => {
                let (n, d) = (polynomials.nodes().len(), self.dimension());
                for point in points {
                    let table = polynomials.values(&point[..d]);
                    let value = |dof: usize, axis: usize| table.row(axis)[dof / n.pow(axis as u32) % n];
                    found
                        .extend(dofs.iter().map(|&dof| (0..d).map(|axis| value(dof, axis)).product::<f64>()));
                }
            }
        }
        found
    }

    /// Returns a rule on the cell that is exact for polynomials of a total degree; on squares and cubes, of that degree in each
    /// coordinate.
    ///
    /// # Panics
    /// If the degree exceeds [`femtile_element::quadrature::MAX_DEGREE`] on simplices.
    pub fn quadrature(&self, degree: usize) -> ReferenceRule {
        ReferenceRule::new(self.kind.is_simplex(), self.dimension(), degree)
    }

    /// Returns a rule on the reference facet as [`Self::quadrature`] does on the cell; [`ElementFacet::point`] maps its points.
    ///
    /// # Panics
    /// As [`Self::quadrature`].
    pub fn facet_quadrature(&self, degree: usize) -> ReferenceRule {
        ReferenceRule::new(self.kind.is_simplex(), self.dimension() - 1, degree)
    }
}

/// Tabulates products of polynomials along `d` axes, the first axis fastest.
fn products(polynomials: &Lagrange, d: usize, points: &[[f64; 3]]) -> Tabulation {
    let n = polynomials.nodes().len();
    let n_dofs = n.pow(d as u32);
    let mut found = Tabulation { n_dofs, ..Tabulation::default() };
    for point in points {
        let (values, slopes) = (polynomials.values(&point[..d]), polynomials.slopes(&point[..d]));
        for dof in 0..n_dofs {
            let index = |axis: usize| dof / n.pow(axis as u32) % n;
            let product = |sloped: Option<usize>| -> f64 {
                let factor = |axis: usize| {
                    let table = if sloped == Some(axis) { &slopes } else { &values };
                    table.row(axis)[index(axis)]
                };
                (0..d).map(factor).product()
            };
            found.values.push(product(None));
            found
                .gradients
                .push(std::array::from_fn(|axis| if axis < d { product(Some(axis)) } else { 0.0 }));
        }
    }
    found
}
