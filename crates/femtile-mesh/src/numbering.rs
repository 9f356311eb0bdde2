//! Points of curved cells by the vertices, edges, faces and insides that they lie on, numbered so that neighbours share them.

use std::collections::HashMap;

use crate::CellKind;

/// Numbers of the points of each cell in lexicographic order, and their count.
pub(crate) struct Numbering {
    pub cells: Vec<u32>,
    pub n_points: usize,
}

/// Numbers the points of quadrilaterals or hexahedra of some order as MFEM does when it reads a mesh.
///
/// Numbers vertices first, then edges in the order of the cells, each from its lower to its higher vertex.
/// Faces follow likewise, each with the orientation in its first cell, then the inside of cells. None if
/// there are too many to number. `goes_around` says that the points inside a cube are numbered around its
/// middle.
///
/// # Source
/// MFEM 4.8: `Mesh::GetElementToEdgeTable`, `Mesh::GetElementToFaceTable`, `FiniteElementSpace::GetElementDofs`,
/// `LagrangeHexFiniteElement` for `Cubic`.
pub(crate) fn number(
    kind: CellKind,
    cells: &[u32],
    n_vertices: usize,
    order: usize,
    goes_around: bool,
) -> Option<Numbering> {
    let n_cells = cells.len() / kind.n_nodes();
    let n_of_cell = (order + 1).pow(kind.dimension() as u32);
    let (edges, n_edges) = number_edges(kind, cells);
    let (faces, n_faces) = number_faces(kind, cells);
    let inner = order - 1;
    let first_edge = n_vertices;
    let first_face = first_edge + n_edges * inner;
    let first_inside = first_face + n_faces * inner * inner;
    let n_inside = inner.pow(kind.dimension() as u32);
    let n_points = first_inside + n_cells * n_inside;
    if n_points > u32::MAX as usize {
        return None;
    }
    let mut numbers = Vec::with_capacity(n_cells * n_of_cell);
    for (cell, vertices) in cells.chunks_exact(kind.n_nodes()).enumerate() {
        for place in Places::new(kind, order) {
            numbers.push(match place {
                Place::Corner(corner) => vertices[corner] as usize,
                Place::Edge { ends, step } => {
                    let (a, b) = (vertices[ends[0]], vertices[ends[1]]);
                    let step = if a < b { step } else { order - step };
                    first_edge + edges[&edge_key(a, b)] as usize * inner + step - 1
                }
                Place::Face { corners, u, v } => {
                    let seen = corners.map(|corner| vertices[corner]);
                    let (face, base) = faces[&face_key(seen)];
                    let (u, v) = turn(seen, base, [u, v], order);
                    first_face + face as usize * inner * inner + (v - 1) * inner + u - 1
                }
                Place::Inside([i, j, k]) => {
                    let along = |i: usize, j: usize| if goes_around && j == 2 { 3 - i } else { i };
                    // `Cubic` goes around the middle of a cube: the second row runs backwards.
                    let i = if kind == CellKind::Hexahedron { along(i, j) } else { i };
                    first_inside + cell * n_inside + ((k.max(1) - 1) * inner + j - 1) * inner + i - 1
                }
            } as u32);
        }
    }
    Some(Numbering { cells: numbers, n_points })
}

/// Edges of a cell as MFEM lists them.
fn edges_of(kind: CellKind) -> &'static [[usize; 2]] {
    match kind {
        CellKind::Quadrilateral => &[[0, 1], [1, 2], [2, 3], [3, 0]],
        _ => {
            &[[0, 1], [1, 2], [3, 2], [0, 3], [4, 5], [5, 6], [7, 6], [4, 7], [0, 4], [1, 5], [2, 6], [3, 7]]
        }
    }
}

/// Faces of a hexahedron as MFEM lists them.
const FACES: [[usize; 4]; 6] =
    [[3, 2, 1, 0], [0, 1, 5, 4], [1, 2, 6, 5], [2, 3, 7, 6], [3, 0, 4, 7], [4, 5, 6, 7]];

fn edge_key(a: u32, b: u32) -> [u32; 2] {
    [a.min(b), a.max(b)]
}

fn face_key(mut vertices: [u32; 4]) -> [u32; 4] {
    vertices.sort_unstable();
    vertices
}

fn number_edges(kind: CellKind, cells: &[u32]) -> (HashMap<[u32; 2], u32>, usize) {
    let mut numbers = HashMap::new();
    for vertices in cells.chunks_exact(kind.n_nodes()) {
        for &[a, b] in edges_of(kind) {
            let next = numbers.len() as u32;
            numbers.entry(edge_key(vertices[a], vertices[b])).or_insert(next);
        }
    }
    let n = numbers.len();
    (numbers, n)
}

/// Number of each face and its vertices as the first cell sees them.
type Faces = HashMap<[u32; 4], (u32, [u32; 4])>;

fn number_faces(kind: CellKind, cells: &[u32]) -> (Faces, usize) {
    let mut numbers = Faces::new();
    if kind == CellKind::Hexahedron {
        for vertices in cells.chunks_exact(8) {
            for face in FACES {
                let (next, seen) = (numbers.len() as u32, face.map(|corner| vertices[corner]));
                numbers.entry(face_key(seen)).or_insert((next, seen));
            }
        }
    }
    let n = numbers.len();
    (numbers, n)
}

/// Corners of a face in its own coordinates.
const FACE_CORNERS: [[isize; 2]; 4] = [[0, 0], [1, 0], [1, 1], [0, 1]];

/// A point of the face that one cell `seen` calls `at`, as the cell of `base` calls it.
fn turn(seen: [u32; 4], base: [u32; 4], at: [usize; 2], order: usize) -> (usize, usize) {
    let find = |vertex| FACE_CORNERS[seen.iter().position(|&other| other == vertex).unwrap_or(0)];
    let (origin, along_u, along_v) = (find(base[0]), find(base[1]), find(base[3]));
    let step = |towards: [isize; 2]| {
        let sum: isize =
            (0..2).map(|d| (at[d] as isize - order as isize * origin[d]) * (towards[d] - origin[d])).sum();
        // Faces whose vertices repeat have no sense of direction; any point of theirs does.
        sum.clamp(1, order as isize - 1) as usize
    };
    (step(along_u), step(along_v))
}

/// Position of a point of a cell.
enum Place {
    Corner(usize),
    Edge { ends: [usize; 2], step: usize },
    Face { corners: [usize; 4], u: usize, v: usize },
    Inside([usize; 3]),
}

/// The points of a cell in lexicographic order.
struct Places {
    kind: CellKind,
    order: usize,
    next: usize,
}

impl Places {
    fn new(kind: CellKind, order: usize) -> Self {
        Self { kind, order, next: 0 }
    }
}

impl Iterator for Places {
    type Item = Place;

    fn next(&mut self) -> Option<Place> {
        let (p, row) = (self.order, self.order + 1);
        let dimension = self.kind.dimension();
        if self.next == row.pow(dimension as u32) {
            return None;
        }
        let point = [self.next % row, self.next / row % row, self.next / (row * row)];
        self.next += 1;
        let is_free = |d: usize| d < dimension && (1..p).contains(&point[d]);
        let n_free = (0..dimension).filter(|&d| is_free(d)).count();
        let holds = |corner: usize| (0..dimension).all(|d| is_free(d) || position(corner)[d] * p == point[d]);
        Some(if n_free == 0 {
            Place::Corner((0..self.kind.n_nodes()).find(|&corner| holds(corner))?)
        } else if n_free == dimension {
            Place::Inside(point)
        } else if n_free == 1 {
            let ends = *edges_of(self.kind).iter().find(|ends| ends.iter().all(|&corner| holds(corner)))?;
            let step = (0..dimension).map(|d| steps(position(ends[0])[d], position(ends[1])[d], point[d], p));
            Place::Edge { ends, step: step.sum() }
        } else {
            let corners = *FACES.iter().find(|face| face.iter().all(|&corner| holds(corner)))?;
            let along = |to: usize| -> usize {
                let ends = [corners[0], corners[to]].map(position);
                (0..dimension).map(|d| steps(ends[0][d], ends[1][d], point[d], p)).sum()
            };
            Place::Face { corners, u: along(1), v: along(3) }
        })
    }
}

/// Coordinates of a corner, 0 or 1.
fn position(corner: usize) -> [usize; 3] {
    [usize::from(matches!(corner % 4, 1 | 2)), usize::from(matches!(corner % 4, 2 | 3)), corner / 4]
}

/// Returns the steps from `from` to `at` along one axis; 0 if `from` and `to` do not differ on it.
fn steps(from: usize, to: usize, at: usize, order: usize) -> usize {
    match (from, to) {
        (0, 1) => at,
        (1, 0) => order - at,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Corners of a cube after rotations, as VTK orders them.
    fn turned(corners: [u32; 8], times: usize) -> [u32; 8] {
        // Around the diagonal from corner 0 to corner 6, then around the upright axis.
        let diagonal = |c: [u32; 8]| [0, 3, 7, 4, 1, 2, 6, 5].map(|i| c[i]);
        let upright = |c: [u32; 8]| [1, 2, 3, 0, 5, 6, 7, 4].map(|i| c[i]);
        (0..times).fold(corners, |found, step| if step % 3 == 2 { upright(found) } else { diagonal(found) })
    }

    #[test]
    fn neighbours_share_the_points_of_their_face_however_they_are_turned() {
        // Two cubes along x over the nodes of a 3 × 2 × 2 grid.
        let at = |node: u32| [node % 3, node / 3 % 2, node / 6].map(f64::from);
        let cubes = [[0, 1, 4, 3, 6, 7, 10, 9], [1, 2, 5, 4, 7, 8, 11, 10]];
        for (first, second) in (0..12).flat_map(|a| (0..12).map(move |b| (a, b))) {
            let cells = [turned(cubes[0], first), turned(cubes[1], second)];
            let found = number(CellKind::Hexahedron, cells.as_flattened(), 12, 4, false).unwrap();
            assert_eq!(found.n_points, 9 * 5 * 5);
            let mut points = vec![None; found.n_points];
            for (corners, numbers) in cells.iter().zip(found.cells.chunks(125)) {
                let [origin, x, y, z] = [0, 1, 3, 4].map(|i| at(corners[i]));
                for (place, &number) in numbers.iter().enumerate() {
                    let t = [place % 5, place / 5 % 5, place / 25].map(|i| i as f64 / 4.0);
                    let step = |d: usize| {
                        t[0] * (x[d] - origin[d]) + t[1] * (y[d] - origin[d]) + t[2] * (z[d] - origin[d])
                    };
                    let p: [f64; 3] = std::array::from_fn(|d| origin[d] + step(d));
                    assert_eq!(*points[number as usize].get_or_insert(p), p, "{first} {second} {place}");
                }
            }
            assert!(points.iter().all(Option::is_some));
        }
    }
}
