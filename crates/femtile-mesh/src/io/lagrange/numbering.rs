//! Orders of the points of cells of higher order in files.

use crate::tensor::CORNERS;
use crate::{CellKind, Curved};

/// Marks a point missing in a serendipity cell.
pub(in crate::io) const MISSING: u32 = u32::MAX;

/// A point of the lattice of a cell: each coordinate, and on simplices their sum, is from 0 to the order.
pub(in crate::io) type Lattice = [usize; 3];

/// The order in which a format lists the points of a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::io) struct Numbering {
    /// Degree of the polynomials.
    pub order: usize,
    /// Lattice of each point of the file.
    points: Vec<Lattice>,
    /// Place of each point of the file in lexicographic order, the first coordinate running fastest.
    places: Vec<usize>,
    /// Number of points of a complete cell.
    n_points: usize,
}

impl Numbering {
    /// Gmsh's: corners, edges, faces, and the same again inside, an order lower by two.
    pub(in crate::io) fn gmsh(kind: CellKind, order: usize) -> Self {
        let points = if kind == CellKind::Quadrilateral { gmsh_square(order) } else { gmsh_cube(order) };
        Self::new(kind, order, points)
    }

    /// VTK's of Lagrange cells; that of biquadratic and triquadratic cells is the same for order 2.
    ///
    /// `is_old` exchanges the last two vertical edges, as in files before VTK 9.
    /// # Source
    /// The documentation of `PointIndexFromIJK` of `vtkHigherOrderHexahedron` and of `BarycentricIndex` of
    /// `vtkHigherOrderTetra`.
    pub(in crate::io) fn vtk(kind: CellKind, order: usize, is_old: bool) -> Self {
        let points = match kind {
            CellKind::Segment => [0, order].into_iter().chain(1..order).map(|i| [i, 0, 0]).collect(),
            CellKind::Triangle => without_first(&vtk_triangle(order)),
            CellKind::Tetrahedron => without_first(&vtk_tetrahedron(order)),
            CellKind::Quadrilateral => vtk_square(order),
            CellKind::Hexahedron => vtk_cube(order, is_old),
        };
        Self::new(kind, order, points)
    }

    fn new(kind: CellKind, order: usize, points: Vec<Lattice>) -> Self {
        let places = points.iter().map(|&at| place(kind, order, at)).collect();
        Self { order, points, places, n_points: n_points(kind, order) }
    }

    /// Only the first points of it, as serendipity cells leave out faces and the middle.
    pub(in crate::io) fn first(mut self, n: usize) -> Self {
        self.points.truncate(n);
        self.places.truncate(n);
        self
    }

    /// Lattice of each point of the file.
    pub(in crate::io) fn points(&self) -> &[Lattice] {
        &self.points
    }

    /// Place of each point of the file in lexicographic order.
    pub(in crate::io) fn places(&self) -> &[usize] {
        &self.places
    }

    /// The points of a cell in lexicographic order, [`MISSING`] if the file has none.
    pub(in crate::io) fn arrange(&self, points: &[u32], arranged: &mut Vec<u32>) {
        arranged.clear();
        arranged.resize(self.n_points, MISSING);
        for (&place, &point) in self.places.iter().zip(points) {
            arranged[place] = point;
        }
    }

    /// Returns the order of a complete cell of `n_points` points, if it is supported.
    pub(in crate::io) fn order_of(kind: CellKind, n_points: usize) -> Option<usize> {
        (1..=Curved::MAX_ORDER).find(|&order| self::n_points(kind, order) == n_points)
    }
}

/// Returns the number of points of a cell of an order.
pub(in crate::io) fn n_points(kind: CellKind, order: usize) -> usize {
    match kind {
        CellKind::Triangle => (order + 1) * (order + 2) / 2,
        CellKind::Tetrahedron => (order + 1) * (order + 2) * (order + 3) / 6,
        _ => (order + 1).pow(kind.dimension() as u32),
    }
}

/// Returns the place of a point among those of its cell in lexicographic order, the first coordinate running fastest.
pub(in crate::io) fn place(kind: CellKind, order: usize, [i, j, k]: Lattice) -> usize {
    let row = order + 1;
    match kind {
        CellKind::Triangle | CellKind::Tetrahedron => {
            let layers: usize = (0..k).map(|k| n_points(CellKind::Triangle, order - k)).sum();
            let rows: usize = (0..j).map(|j| row - k - j).sum();
            layers + rows + i
        }
        _ => i + row * (j + row * k),
    }
}

/// The point `step / order` of the way from one corner to another.
fn between(from: usize, to: usize, step: usize, order: usize) -> Lattice {
    let (from, to) = (CORNERS[from], CORNERS[to]);
    std::array::from_fn(|d| from[d] * (order - step) + to[d] * step)
}

fn corners(n: usize, order: usize) -> Vec<Lattice> {
    CORNERS[..n].iter().map(|corner| corner.map(|x| x * order)).collect()
}

fn edges<'a>(edges: &'a [[usize; 2]], order: usize) -> impl Iterator<Item = Lattice> + 'a {
    edges.iter().flat_map(move |&[a, b]| (1..order).map(move |step| between(a, b, step, order)))
}

fn gmsh_square(order: usize) -> Vec<Lattice> {
    if order == 0 {
        return vec![[0; 3]];
    }
    let mut points = corners(4, order);
    points.extend(edges(&[[0, 1], [1, 2], [2, 3], [3, 0]], order));
    if order > 1 {
        points.extend(gmsh_square(order - 2).iter().map(|&[i, j, _]| [i + 1, j + 1, 0]));
    }
    points
}

fn gmsh_cube(order: usize) -> Vec<Lattice> {
    const EDGES: [[usize; 2]; 12] =
        [[0, 1], [0, 3], [0, 4], [1, 2], [1, 5], [2, 3], [2, 6], [3, 7], [4, 5], [4, 7], [5, 6], [6, 7]];
    // The first corner of each face, and those that its first and second coordinate lead to.
    const FACES: [[usize; 3]; 6] = [[0, 3, 1], [0, 1, 4], [0, 4, 3], [1, 2, 5], [2, 3, 6], [4, 5, 7]];
    if order == 0 {
        return vec![[0; 3]];
    }
    let mut points = corners(8, order);
    points.extend(edges(&EDGES, order));
    if order > 1 {
        for face in FACES {
            points.extend(gmsh_square(order - 2).iter().map(|&[u, v, _]| {
                let [origin, along_u, along_v] = face.map(|corner| CORNERS[corner]);
                std::array::from_fn(|d| {
                    // Each term is zero unless the corner lies further along this axis, or nearer.
                    let n = order as isize * origin[d] as isize;
                    let step = |to: usize, by: usize| (to as isize - origin[d] as isize) * (by as isize + 1);
                    (n + step(along_u[d], u) + step(along_v[d], v)) as usize
                })
            }));
        }
        points.extend(gmsh_cube(order - 2).iter().map(|point| point.map(|i| i + 1)));
    }
    points
}

/// Edges of a quadrilateral of VTK, which all ascend.
const SQUARE_EDGES: [[usize; 2]; 4] = [[0, 1], [1, 2], [3, 2], [0, 3]];

fn vtk_square(order: usize) -> Vec<Lattice> {
    let mut points = corners(4, order);
    points.extend(edges(&SQUARE_EDGES, order));
    points.extend((1..order).flat_map(|j| (1..order).map(move |i| [i, j, 0])));
    points
}

fn vtk_cube(order: usize, is_old: bool) -> Vec<Lattice> {
    let upright = if is_old { [[0, 4], [1, 5], [3, 7], [2, 6]] } else { [[0, 4], [1, 5], [2, 6], [3, 7]] };
    let mut points = corners(8, order);
    points.extend(edges(&SQUARE_EDGES, order));
    points.extend(edges(&SQUARE_EDGES.map(|edge| edge.map(|corner| corner + 4)), order));
    points.extend(edges(&upright, order));
    for axis in 0..3 {
        let (u, v) = if axis == 0 { (1, 2) } else { (0, if axis == 1 { 2 } else { 1 }) };
        for side in [0, order] {
            for (b, a) in (1..order).flat_map(|b| (1..order).map(move |a| (b, a))) {
                let mut point = [side; 3];
                (point[u], point[v]) = (a, b);
                points.push(point);
            }
        }
    }
    for k in 1..order {
        points.extend((1..order).flat_map(|j| (1..order).map(move |i| [i, j, k])));
    }
    points
}

/// Returns the coordinates of points of a simplex given by their indices for each corner.
fn without_first<const N: usize>(points: &[[usize; N]]) -> Vec<Lattice> {
    let lattice = |point: &[usize; N]| std::array::from_fn(|axis| point.get(axis + 1).copied().unwrap_or(0));
    points.iter().map(lattice).collect()
}

/// Corners and edges of a simplex by their indices for each corner.
fn corners_and_edges<const N: usize>(edges: &[[usize; 2]], order: usize) -> Vec<[usize; N]> {
    let along = |[from, to]: [usize; 2], step: usize| {
        let mut point = [0; N];
        point[from] = order - step;
        point[to] += step;
        point
    };
    let corners = (0..N).map(|corner| along([corner; 2], 0));
    corners.chain(edges.iter().flat_map(|&edge| (1..order).map(move |step| along(edge, step)))).collect()
}

/// Corners, edges, and the same again inside, an order lower by three.
fn vtk_triangle(order: usize) -> Vec<[usize; 3]> {
    if order == 0 {
        return vec![[0; 3]];
    }
    let mut points = corners_and_edges(&[[0, 1], [1, 2], [2, 0]], order);
    if order > 2 {
        points.extend(vtk_triangle(order - 3).iter().map(|point| point.map(|i| i + 1)));
    }
    points
}

/// Corners, edges, insides of faces, and the same again inside, an order lower by four.
fn vtk_tetrahedron(order: usize) -> Vec<[usize; 4]> {
    const EDGES: [[usize; 2]; 6] = [[0, 1], [1, 2], [2, 0], [0, 3], [1, 3], [2, 3]];
    const FACES: [[usize; 3]; 4] = [[0, 1, 3], [2, 3, 1], [0, 3, 2], [0, 2, 1]];
    if order == 0 {
        return vec![[0; 4]];
    }
    let mut points = corners_and_edges(&EDGES, order);
    if order > 2 {
        for face in FACES {
            points.extend(vtk_triangle(order - 3).iter().map(|on_face| {
                let mut point = [0; 4];
                face.iter().zip(on_face).for_each(|(&corner, i)| point[corner] = i + 1);
                point
            }));
        }
    }
    if order > 3 {
        points.extend(vtk_tetrahedron(order - 4).iter().map(|point| point.map(|i| i + 1)));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::corner_places;

    const KINDS: [CellKind; 2] = [CellKind::Quadrilateral, CellKind::Hexahedron];

    #[test]
    fn points_of_simplices_are_listed_once_with_the_corners_first() {
        for kind in [CellKind::Triangle, CellKind::Tetrahedron] {
            for order in 1..=Curved::MAX_ORDER {
                let numbering = Numbering::vtk(kind, order, false);
                let mut sorted = numbering.places.clone();
                sorted.sort_unstable();
                assert!(sorted.iter().copied().eq(0..numbering.n_points), "{kind} {order}");
                assert_eq!(numbering.points[0], [0; 3]);
                for (axis, corner) in numbering.points[1..kind.n_nodes()].iter().enumerate() {
                    let expected: Lattice = std::array::from_fn(|d| order * usize::from(d == axis));
                    assert_eq!(*corner, expected, "{kind} {order}");
                }
                assert_eq!(Numbering::order_of(kind, numbering.n_points), Some(order));
            }
        }
        let ascending = |kind: CellKind| {
            let mut points = Numbering::vtk(kind, 5, false).points;
            points.sort_by_key(|&[i, j, k]| [k, j, i]);
            points.iter().enumerate().all(|(i, &at)| place(kind, 5, at) == i)
        };
        assert!(ascending(CellKind::Triangle) && ascending(CellKind::Tetrahedron));
    }

    #[test]
    fn vtk_numbers_simplices_as_its_library_says() {
        // Coordinates of the points, as `BarycentricIndex` of VTK 9.5 gives them.
        let listed = |kind: CellKind, order: usize| {
            let numbering = Numbering::vtk(kind, order, false);
            let digits = |point: &Lattice| {
                point[..kind.dimension()].iter().map(ToString::to_string).collect::<String>()
            };
            numbering.points.iter().map(digits).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(listed(CellKind::Triangle, 4), "00 40 04 10 20 30 31 22 13 03 02 01 11 21 12");
        assert_eq!(
            listed(CellKind::Triangle, 6),
            "00 60 06 10 20 30 40 50 51 42 33 24 15 05 04 03 02 01 11 41 14 21 31 32 23 13 12 22"
        );
        assert_eq!(
            listed(CellKind::Tetrahedron, 5),
            "000 500 050 005 100 200 300 400 410 320 230 140 040 030 020 010 001 002 003 004 401 302 \
             203 104 041 032 023 014 101 301 103 201 202 102 131 113 311 122 212 221 011 013 031 012 \
             022 021 110 130 310 120 220 210 111 211 121 112"
        );
    }

    #[test]
    fn every_numbering_lists_every_point_once_and_corners_first() {
        for kind in KINDS {
            for order in 1..=Curved::MAX_ORDER {
                let all = [
                    Numbering::gmsh(kind, order),
                    Numbering::vtk(kind, order, false),
                    Numbering::vtk(kind, order, true),
                ];
                for numbering in all {
                    let mut sorted = numbering.places.clone();
                    sorted.sort_unstable();
                    assert!(sorted.iter().copied().eq(0..numbering.n_points), "{kind} {order}");
                    assert!(
                        corner_places(kind, order).eq(numbering.places[..kind.n_nodes()].iter().copied())
                    );
                    assert_eq!(Numbering::order_of(kind, numbering.places.len()), Some(order));
                }
            }
        }
        assert_eq!(Numbering::order_of(CellKind::Hexahedron, 20), None);
    }

    #[test]
    fn gmsh_numbers_the_cube_of_order_three_as_its_library_says() {
        // Digits of the lattice, as Gmsh 4.15 gives the coordinates of element type 92.
        let expected = "000 300 330 030 003 303 333 033 100 200 010 020 001 002 310 320 301 302 230 130 331 332 \
                        031 032 103 203 013 023 313 323 233 133 110 120 220 210 101 201 202 102 011 012 022 021 \
                        311 321 322 312 231 131 132 232 113 213 223 123 111 211 221 121 112 212 222 122";
        let found: Vec<String> =
            gmsh_cube(3).iter().map(|point| point.map(|i| i.to_string()).concat()).collect();
        assert_eq!(found.join(" "), expected);
        let square = "00 30 33 03 10 20 31 32 23 13 02 01 11 21 22 12";
        let found: Vec<String> = gmsh_square(3).iter().map(|[i, j, _]| format!("{i}{j}")).collect();
        assert_eq!(found.join(" "), square);
    }

    #[test]
    fn vtk_numbers_the_cube_of_order_three_as_its_library_says() {
        // Number of each point in lexicographic order, as VTK 9 gives it.
        let expected = [
            0, 8, 9, 1, 14, 48, 49, 10, 15, 50, 51, 11, 3, 12, 13, 2, 24, 40, 41, 26, 32, 56, 57, 36, 33, 58,
            59, 37, 30, 44, 45, 28, 25, 42, 43, 27, 34, 60, 61, 38, 35, 62, 63, 39, 31, 46, 47, 29, 4, 16,
            17, 5, 22, 52, 53, 18, 23, 54, 55, 19, 7, 20, 21, 6,
        ];
        let mut arranged = Vec::new();
        let numbers: Vec<u32> = (0..64).collect();
        Numbering::vtk(CellKind::Hexahedron, 3, false).arrange(&numbers, &mut arranged);
        assert_eq!(arranged, expected);
        Numbering::vtk(CellKind::Hexahedron, 3, true).arrange(&numbers, &mut arranged);
        assert_eq!((arranged[28], arranged[31]), (28, 30));
        Numbering::vtk(CellKind::Quadrilateral, 3, false).arrange(&numbers[..16], &mut arranged);
        assert_eq!(arranged, [0, 4, 5, 1, 10, 12, 13, 6, 11, 14, 15, 7, 3, 8, 9, 2]);
    }
}
