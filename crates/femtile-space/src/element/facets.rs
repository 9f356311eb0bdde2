//! Facets of reference cells.

use femtile_mesh::CellKind;

/// A facet of a reference cell, as the image of the reference interval, triangle or square under a linear map.
#[derive(Debug, Clone, PartialEq)]
pub struct ElementFacet {
    /// Its corners among those of the cell; the four of a square run along the first axis fastest.
    pub corners: Vec<usize>,
    /// The degrees of freedom on the closed facet among those of the cell, ascending.
    pub dofs: Vec<usize>,
    /// The outward normal whose length is the ratio of the measure of the facet to that of its reference facet: with a map of
    /// the cell with Jacobian J, $|\det J|\, J^{-\mathsf{T}} n$ is the area vector for weights of the reference facet.
    pub normal: [f64; 3],
    axes: FacetAxes,
}

/// The linear map from a reference facet to a reference cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct FacetAxes {
    pub origin: [f64; 3],
    pub tangents: [[f64; 3]; 2],
}

impl FacetAxes {
    /// Returns the map to the facet with these corners: the second and third are the ends of its axes.
    pub fn new(kind: CellKind, corners: &[usize]) -> Self {
        let [origin, first] = [0, 1].map(|i| corner(kind, corners[i]));
        let second = corners.get(2).map_or(origin, |&second| corner(kind, second));
        Self { origin, tangents: [difference(first, origin), difference(second, origin)] }
    }

    /// Returns the point of the cell for a point of the reference facet.
    pub fn point(&self, [s, t, _]: [f64; 3]) -> [f64; 3] {
        let [first, second] = self.tangents;
        std::array::from_fn(|axis| self.origin[axis] + s * first[axis] + t * second[axis])
    }
}

impl ElementFacet {
    /// Returns the point of the reference cell for a point of the reference facet, whose axes end in the second and third
    /// corner.
    pub fn point(&self, point: [f64; 3]) -> [f64; 3] {
        self.axes.point(point)
    }
}

/// Returns the facets of a cell with these nodes.
pub(super) fn of_cell(kind: CellKind, nodes: &[[f64; 3]]) -> Vec<ElementFacet> {
    corners_of_facets(kind).into_iter().map(|corners| of_corners(kind, corners, nodes)).collect()
}

fn of_corners(kind: CellKind, corners: Vec<usize>, nodes: &[[f64; 3]]) -> ElementFacet {
    let axes = FacetAxes::new(kind, &corners);
    let FacetAxes { origin, tangents: [first, second] } = axes;
    let area = if kind.dimension() == 2 { cross(first, [0.0, 0.0, 1.0]) } else { cross(first, second) };
    // The cell lies behind its facets.
    let inwards = (0..kind.n_nodes()).map(|other| dot(area, difference(corner(kind, other), origin)));
    let is_outward = inwards.fold(0.0, f64::min) < 0.0;
    let normal = if is_outward { area } else { area.map(|x| -x) };
    let is_on_it = |dof: &usize| dot(normal, difference(nodes[*dof], origin)).abs() < 1e-12;
    ElementFacet { dofs: (0..nodes.len()).filter(is_on_it).collect(), corners, normal, axes }
}

/// Returns the corners of each facet of a cell, in the cell's own order of corners.
pub(crate) fn corners_of_facets(kind: CellKind) -> Vec<Vec<usize>> {
    if kind.is_simplex() {
        return kind.facets().iter().map(|facet| facet.to_vec()).collect();
    }
    let end = |axis: usize, is_upper: usize| {
        (0..kind.n_nodes()).filter(|corner| corner >> axis & 1 == is_upper).collect()
    };
    (0..2 * kind.dimension()).map(|facet| end(facet / 2, facet % 2)).collect()
}

/// Returns the reference coordinates of a corner.
pub(crate) fn corner(kind: CellKind, corner: usize) -> [f64; 3] {
    let is_one = |axis: usize| if kind.is_simplex() { corner == axis + 1 } else { corner >> axis & 1 == 1 };
    std::array::from_fn(|axis| f64::from(is_one(axis)))
}

fn difference(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    std::array::from_fn(|axis| a[axis] - b[axis])
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}
