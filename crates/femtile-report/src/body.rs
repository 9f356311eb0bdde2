//! Cells of one kind and any order, divided into straight ones.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use femtile_mesh::check::boundary_facets;
use femtile_mesh::io::vtu::lattice;
use femtile_mesh::{CellKind, Mesh, MeshError};

use crate::cut::{Cutter, Plane};
use crate::surface::{Surface, triangles_of};
use crate::{ReportError, vector};

/// Tetrahedra of a hexahedron, around the diagonal from its first corner to the seventh.
const TETRAHEDRA: [[usize; 4]; 6] =
    [[0, 1, 2, 6], [0, 2, 3, 6], [0, 3, 7, 6], [0, 7, 4, 6], [0, 4, 5, 6], [0, 5, 1, 6]];

/// A mesh as its file for ParaView has it: points and cells of one kind and order.
///
/// Cells of a higher order are drawn as straight ones between their points.
#[derive(Debug, Clone)]
pub struct Body {
    mesh: Mesh,
    /// Nodes of the facets of the boundary, once a surface has needed them: pictures and pages share a body.
    facets: OnceLock<Vec<u32>>,
}

impl Body {
    /// Creates a body of cells with their points in the order of VTK.
    ///
    /// # Errors
    /// [`ReportError::Mesh`] where cells and points do not fit.
    pub fn new(
        kind: CellKind,
        order: usize,
        points: Vec<[f64; 3]>,
        cells: &[u32],
    ) -> Result<Self, ReportError> {
        let mesh = Mesh::new(points, kind, straight_cells(kind, order, cells)?.into_owned())?;
        Ok(Self { mesh, facets: OnceLock::new() })
    }

    /// Creates a body of the cells of a mesh between their corners.
    ///
    /// # Errors
    /// As [`Body::new`].
    pub fn of_mesh(mesh: &Mesh) -> Result<Self, ReportError> {
        Self::new(mesh.kind, 1, mesh.points.clone(), &mesh.cells)
    }

    /// Returns the dimension of the cells.
    pub fn dimension(&self) -> usize {
        self.mesh.dimension()
    }

    /// Returns the dimension of the space that they lie in, 3 of a surface in space.
    pub fn space_dimension(&self) -> usize {
        self.mesh.space_dimension()
    }

    /// Returns the number of corners of facets, which triangles of the surface come from: 3, or 4 for pairs of triangles.
    pub(crate) fn corners(&self) -> usize {
        if self.mesh.kind.is_simplex() { 3 } else { 4 }
    }

    /// Returns the points.
    pub fn points(&self) -> &[[f64; 3]] {
        &self.mesh.points
    }

    /// Returns the least and the largest coordinates.
    pub fn bounds(&self) -> [[f64; 3]; 2] {
        vector::bounds(self.points())
    }

    /// Returns the triangles of the boundary, or of all cells in two dimensions; segments become a ribbon.
    ///
    /// # Errors
    /// [`ReportError::Length`] unless there is a value for each point.
    pub fn surface(&self, values: &[f64]) -> Result<Surface, ReportError> {
        self.check(values)?;
        let facets = match self.mesh.kind {
            CellKind::Segment => return Ok(Surface::ribbon(self.points(), &self.mesh.cells, values)),
            CellKind::Triangle | CellKind::Quadrilateral => &self.mesh.cells,
            CellKind::Tetrahedron | CellKind::Hexahedron => {
                self.facets.get_or_init(|| boundary_facets(&self.mesh).nodes)
            }
        };
        Ok(Surface::of_facets(self.points(), &triangles_of(facets, self.corners()), values))
    }

    /// Returns the section of a body with a plane; empty in one and two dimensions.
    ///
    /// # Errors
    /// [`ReportError::Length`] unless there is a value for each point.
    pub fn cut(&self, plane: &Plane, values: &[f64]) -> Result<Surface, ReportError> {
        self.check(values)?;
        let mut cutter = Cutter::new(plane, self.points(), values);
        for cell in self.mesh.cells.chunks_exact(self.mesh.kind.n_nodes()) {
            if self.dimension() == 3 && cutter.meets(cell) {
                match cell {
                    &[a, b, c, d] => cutter.tetrahedron([a, b, c, d]),
                    _ => TETRAHEDRA.iter().for_each(|tet| cutter.tetrahedron(tet.map(|i| cell[i]))),
                }
            }
        }
        Ok(cutter.finish())
    }

    fn check(&self, values: &[f64]) -> Result<(), ReportError> {
        let (n_values, n_points) = (values.len(), self.points().len());
        if n_values == n_points { Ok(()) } else { Err(ReportError::Length { n_values, n_points }) }
    }
}

/// Divides cells of an order into straight cells between neighbouring points.
fn straight_cells(kind: CellKind, order: usize, cells: &[u32]) -> Result<Cow<'_, [u32]>, MeshError> {
    if order == 1 {
        return Ok(Cow::Borrowed(cells));
    }
    let lattice = lattice(kind, order)?;
    let place_of: BTreeMap<[usize; 3], usize> = lattice.iter().copied().zip(0..).collect();
    let corners = match kind.is_simplex() {
        true => straight_simplices(kind.dimension(), order),
        false => straight_corners(kind, order),
    };
    let corners: Vec<usize> = corners.iter().map(|corner| place_of[corner]).collect();
    let cells = cells.chunks_exact(lattice.len());
    Ok(Cow::Owned(cells.flat_map(|cell| corners.iter().map(|&corner| cell[corner])).collect()))
}

/// Returns the corners of all straight simplices of one of an order, as places on its lattice.
///
/// They are those simplices of Kuhn's division of cubes that lie in $n \ge y_1 \ge y_2 \ge y_3 \ge 0$ with
/// $y_1 = i + j + k$, $y_2 = j + k$, $y_3 = k$. On a facet they are the same from both sides, however the cells are turned.
fn straight_simplices(d: usize, order: usize) -> Vec<[usize; 3]> {
    // Even permutations of the axes first.
    let paths: &[[usize; 3]] = match d {
        2 => &[[0, 1, 2], [1, 0, 2]],
        _ => &[[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1], [1, 0, 2], [2, 1, 0]],
    };
    let is_inside = |y: &[usize; 3]| order >= y[0] && y[0] >= y[1] && y[1] >= y[2];
    let layers = if d == 3 { order } else { 1 };
    let cubes = (0..layers).flat_map(|c| (0..order).flat_map(move |b| (0..order).map(move |a| [a, b, c])));
    let mut all = Vec::new();
    for (cube, (number, path)) in
        cubes.flat_map(|cube| paths.iter().enumerate().map(move |path| (cube, path)))
    {
        let mut corners = vec![cube];
        for &axis in &path[..d] {
            let mut next = corners[corners.len() - 1];
            next[axis] += 1;
            corners.push(next);
        }
        if number >= paths.len() / 2 {
            corners.swap(d - 1, d);
        }
        if corners.iter().all(is_inside) {
            all.extend(corners.iter().map(|y| [y[0] - y[1], y[1] - y[2], y[2]]));
        }
    }
    all
}

/// Returns the corners of all straight quadrilaterals or hexahedra of one of an order, as places on its lattice.
fn straight_corners(kind: CellKind, order: usize) -> Vec<[usize; 3]> {
    let layers = if kind.dimension() == 3 { order } else { 1 };
    let mut all = Vec::new();
    for k in 0..layers {
        for (j, i) in (0..order).flat_map(|j| (0..order).map(move |i| (j, i))) {
            let square = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]];
            all.extend(square.map(|[i, j]| [i, j, k]));
            if kind.dimension() == 3 {
                all.extend(square.map(|[i, j]| [i, j, k + 1]));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, box_mesh, square};
    use femtile_mesh::io::vtu::LagrangeCells;

    use super::*;

    fn cube(split: BoxSplit) -> Body {
        Body::of_mesh(&box_mesh(&BoxConfig { cells: [3, 2, 4], split, ..BoxConfig::default() }).unwrap())
            .unwrap()
    }

    /// One cell of an order on the unit square or cube.
    fn one_cell(kind: CellKind, order: usize) -> Body {
        let ticks = 0..=order;
        let layers = if kind == CellKind::Hexahedron { 0..=order } else { 0..=0 };
        let points: Vec<[f64; 3]> = layers
            .flat_map(|k| ticks.clone().map(move |j| (j, k)))
            .flat_map(|(j, k)| ticks.clone().map(move |i| [i, j, k].map(|x| x as f64 / order as f64)))
            .collect();
        let cells: Vec<u32> = (0..points.len() as u32).collect();
        let cells = LagrangeCells { kind, order, points: &points, cells: &cells }.in_vtk_order();
        Body::new(kind, order, points.clone(), &cells).unwrap()
    }

    #[test]
    fn the_surface_of_a_box_has_its_area_whatever_its_cells_are() {
        for body in [cube(BoxSplit::Kuhn), cube(BoxSplit::Hexahedron), one_cell(CellKind::Hexahedron, 3)] {
            let values: Vec<f64> = body.points().iter().map(|p| p[0]).collect();
            let surface = body.surface(&values).unwrap();
            assert!((surface.area() - 6.0).abs() < 1e-12, "{}", surface.area());
            for (point, value) in surface.points.iter().zip(&surface.values) {
                assert_eq!(point[0], *value);
            }
        }
        let square = one_cell(CellKind::Quadrilateral, 4);
        let surface = square.surface(&[0.0; 25]).unwrap();
        assert!((surface.area() - 1.0).abs() < 1e-12 && surface.triangles.len() == 32);
    }

    #[test]
    fn a_cut_has_the_area_of_the_section_and_the_values_of_a_linear_function() {
        let plane = Plane { origin: [0.4, 0.0, 0.37], normal: [0.0, 0.0, 1.0] };
        for body in [cube(BoxSplit::Kuhn), cube(BoxSplit::Hexahedron), one_cell(CellKind::Hexahedron, 2)] {
            let values: Vec<f64> = body.points().iter().map(|p| p[0] + 2.0 * p[2]).collect();
            let cut = body.cut(&plane, &values).unwrap();
            assert!((cut.area() - 1.0).abs() < 1e-12, "{}", cut.area());
            for (point, value) in cut.points.iter().zip(&cut.values) {
                assert!((point[2] - 0.37).abs() < 1e-12 && (value - point[0] - 0.74).abs() < 1e-12);
            }
        }
    }

    /// The cells of a box or square of simplices with the points of an order, and the measure of its straight cells.
    fn divided(mesh: &Mesh, order: usize) -> Body {
        let lattice = lattice(mesh.kind, order).unwrap();
        let mut numbers = BTreeMap::new();
        let (mut points, mut cells) = (Vec::new(), Vec::new());
        for corners in mesh.cells.chunks(mesh.kind.n_nodes()) {
            for at in &lattice {
                let first = order - at.iter().sum::<usize>();
                let weights = std::iter::once(&first).chain(at).zip(corners);
                let point: [f64; 3] = std::array::from_fn(|axis| {
                    let terms =
                        weights.clone().map(|(&n, &node)| n as f64 * mesh.points[node as usize][axis]);
                    terms.sum::<f64>() / order as f64
                });
                let key = point.map(|x| (x * 1e6).round() as i64);
                cells.push(*numbers.entry(key).or_insert_with(|| {
                    points.push(point);
                    points.len() as u32 - 1
                }));
            }
        }
        Body::new(mesh.kind, order, points, &cells).unwrap()
    }

    #[test]
    fn simplices_of_any_order_are_divided_alike_on_both_sides_of_a_facet() {
        let kuhn = box_mesh(&BoxConfig { cells: [2, 1, 2], ..BoxConfig::default() }).unwrap();
        let plane = square(&SquareConfig { cells: [3, 2], ..SquareConfig::default() }).unwrap();
        for order in 1..=5 {
            let body = divided(&kuhn, order);
            assert_eq!(body.mesh.n_cells(), kuhn.n_cells() * order.pow(3));
            let volumes = body.mesh.cells.chunks(4).map(|cell| {
                let [a, b, c, d] = [0, 1, 2, 3].map(|i| body.points()[cell[i] as usize]);
                let edges = [b, c, d].map(|p| vector::difference(p, a));
                vector::dot(edges[0], vector::cross(edges[1], edges[2])) / 6.0
            });
            let least = volumes.clone().fold(f64::INFINITY, f64::min);
            assert!(least > 0.0 && (volumes.sum::<f64>() - 1.0).abs() < 1e-12, "{order}: {least}");
            // Facets inside would add to the area.
            let surface = body.surface(&vec![0.0; body.points().len()]).unwrap();
            assert!((surface.area() - 6.0).abs() < 1e-12, "{order}: {}", surface.area());
            let body = divided(&plane, order);
            let surface = body.surface(&vec![0.0; body.points().len()]).unwrap();
            assert_eq!(surface.triangles.len(), plane.n_cells() * order * order);
            assert!((surface.area() - 1.0).abs() < 1e-12, "{order}: {}", surface.area());
        }
    }

    #[test]
    fn a_field_of_another_length_is_refused() {
        let error = cube(BoxSplit::Kuhn).surface(&[0.0; 7]).unwrap_err().to_string();
        assert!(error.contains("7 values for 60 points"), "{error}");
    }
}
