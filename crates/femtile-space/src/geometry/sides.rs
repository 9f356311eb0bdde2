//! Boundary facets as sides of cells in the axes of a space.

use femtile_element::tensor::{Lagrange, Table};
use femtile_mesh::check::BoundaryFacets;

use super::CellMaps;
use crate::TensorSpace;

/// A side of a cell: an end of one of its axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Side {
    /// The cell's position in the order of visits.
    pub position: usize,
    axis: usize,
    is_upper: bool,
}

/// Sides of cells, their degrees of freedom, points and measures.
pub struct Sides<'a> {
    space: &'a TensorSpace<'a>,
    maps: CellMaps<'a>,
    /// Position of each cell of the mesh.
    positions: Vec<u32>,
    /// Shape functions of a side at its points, then their slopes along each of its axes, from [`product_table`].
    shapes: Vec<Vec<f64>>,
}

/// Points of a side for each product of coordinates, the first axis fastest, and their area factors.
#[derive(Debug, Default)]
pub struct SideMap {
    /// Points x.
    pub points: Vec<[f64; 3]>,
    /// Length or area of the side per unit of the reference side.
    pub measures: Vec<f64>,
}

impl<'a> Sides<'a> {
    /// Prepares evaluation at coordinates on [0, 1] along each axis of a side.
    pub fn new(space: &'a TensorSpace<'a>, coordinates: &[f64]) -> Self {
        let mut positions = vec![0; space.n_cells()];
        space.order().iter().zip(0..).for_each(|(&cell, position)| positions[cell as usize] = position);
        let maps = CellMaps::new(space, &[]);
        let order = maps.order();
        let shapes = Lagrange::new((0..=order).map(|i| i as f64 / order as f64).collect());
        let (values, slopes) = (shapes.values(coordinates), shapes.slopes(coordinates));
        let d = space.dimension() - 1;
        let sloped = std::iter::once(None).chain((0..d).map(Some));
        let shapes = sloped.map(|sloped| product_table(&values, &slopes, d, sloped)).collect();
        Self { space, maps, positions, shapes }
    }

    /// Returns the side of a boundary facet.
    ///
    /// # Panics
    /// If the facet is no side of its cell: the boundary belongs to another mesh.
    pub fn of_facet(&self, boundary: &BoundaryFacets, facet: usize) -> Side {
        let position = self.positions[boundary.cells[facet] as usize] as usize;
        let (nodes, corners) = (boundary.facet(facet), self.space.corners(position));
        let on_facet = || (0..corners.len()).filter(|&corner| nodes.contains(&corners[corner]));
        let all = on_facet().fold(usize::MAX, |all, corner| all & corner);
        let any = on_facet().fold(0, |any, corner| any | corner);
        let fixed = |axis: &usize| (all >> axis & 1 == 1) || (any >> axis & 1 == 0);
        let axis = (0..self.space.dimension()).find(fixed).filter(|_| on_facet().count() == nodes.len());
        let Some(axis) = axis else { panic!("facet {facet} is no side of cell {}", boundary.cells[facet]) };
        Side { position, axis, is_upper: all >> axis & 1 == 1 }
    }

    /// Iterates over the entries on the side of a tensor with `n` entries along each axis, the first axis fastest.
    pub fn entries(&self, side: Side, n: usize) -> impl Iterator<Item = usize> {
        let (stride, wanted) = (n.pow(side.axis as u32), if side.is_upper { n - 1 } else { 0 });
        (0..n.pow(self.space.dimension() as u32)).filter(move |at| at / stride % n == wanted)
    }

    /// Returns the degrees of freedom on the closed side: `[(p + 1)^(d − 1)]`, the first axis fastest.
    pub fn dofs(&self, side: Side) -> Vec<u32> {
        let mut dofs = vec![0; self.space.dofs_per_cell()];
        self.space.cell_dofs(side.position, &mut dofs);
        self.entries(side, self.space.degree() + 1).map(|at| dofs[at]).collect()
    }

    /// Returns points and measures.
    pub fn map(&self, side: Side) -> SideMap {
        let nodes = self.maps.nodes(side.position);
        let nodes: Vec<[f64; 3]> = self.entries(side, self.maps.order() + 1).map(|at| nodes[at]).collect();
        let mut combined = self.shapes.iter().map(|shapes| combine(&nodes, shapes));
        let points = combined.next().unwrap_or_default();
        let tangents: Vec<Vec<[f64; 3]>> = combined.collect();
        let measure = |q: usize| match &tangents[..] {
            [along] => length(along[q]),
            [first, second, ..] => length(cross(first[q], second[q])),
            [] => 1.0,
        };
        SideMap { measures: (0..points.len()).map(measure).collect(), points }
    }
}

/// Combines the nodes of a side with shape functions at each point.
fn combine(nodes: &[[f64; 3]], shapes: &[f64]) -> Vec<[f64; 3]> {
    let point = |row: &[f64]| {
        std::array::from_fn(|i| row.iter().zip(nodes).map(|(weight, node)| weight * node[i]).sum())
    };
    shapes.chunks_exact(nodes.len()).map(point).collect()
}

/// Returns products of shape functions along `d` axes, with the slope along one of them: `[n_q^d][n^d]`, the first axis
/// fastest.
pub fn product_table(values: &Table, slopes: &Table, d: usize, sloped: Option<usize>) -> Vec<f64> {
    let (n_q, n) = (values.n_points, values.n_shapes);
    let factor = |a: usize, q: usize, i: usize| {
        let table = if sloped == Some(a) { slopes } else { values };
        table.row(q / n_q.pow(a as u32) % n_q)[i / n.pow(a as u32) % n]
    };
    let (rows, columns) = (n_q.pow(d as u32), n.pow(d as u32));
    let entry = |at: usize| (0..d).map(|a| factor(a, at / columns, at % columns)).product();
    (0..rows * columns).map(entry).collect()
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn length(v: [f64; 3]) -> f64 {
    (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile_element::quadrature::gauss_legendre;
    use femtile_mesh::check::boundary_facets;
    use femtile_mesh::generate::{BoxConfig, BoxSplit, box_mesh};

    #[test]
    fn sides_of_a_box_are_where_their_facets_are() {
        let config = BoxConfig {
            cells: [2, 3, 1],
            split: BoxSplit::Hexahedron,
            upper: [1.0, 2.0, 3.0],
            ..BoxConfig::default()
        };
        let mesh = box_mesh(&config).unwrap();
        let boundary = boundary_facets(&mesh);
        let space = TensorSpace::new(&mesh, 3).unwrap();
        let (points, weights) = gauss_legendre(2);
        let sides = Sides::new(&space, &points);
        let mut area = 0.0;
        for facet in 0..boundary.len() {
            let side = sides.of_facet(&boundary, facet);
            let map = sides.map(side);
            let corners: Vec<[f64; 3]> =
                boundary.facet(facet).iter().map(|&node| mesh.points[node as usize]).collect();
            let flat = (0..3).find(|&a| corners.iter().all(|c| c[a] == corners[0][a])).unwrap();
            assert!(map.points.iter().all(|p| (p[flat] - corners[0][flat]).abs() < 1e-14));
            assert_eq!(sides.dofs(side).len(), 16);
            area += (0..4).map(|q| weights[q % 2] * weights[q / 2] * map.measures[q]).sum::<f64>();
        }
        assert!((area - 22.0).abs() < 1e-12);
    }
}
