//! Divides quadrilaterals, pyramids, prisms and hexahedra into triangles and tetrahedra, for files that mix kinds of cells.
//!
//! Every quadrilateral face is cut along the diagonal from its corner of the lowest number. So both cells of a face cut it alike,
//! whatever their kinds, and no node is added. Points in the same place have one number for this: cells that have points of their own
//! on a common face still match when these are merged. A solid is cut into the tetrahedra between its corner of the lowest number and the
//! triangles of the faces that do not have this corner: two of a pyramid, three of a prism, six of a hexahedron. If none of these
//! triangles of a hexahedron is cut along a diagonal from the opposite corner, five fill it.
//!
//! # Source
//! `[dompierre1999]`. Differs: nodes need not be sorted, and cells may be collapsed.

use std::collections::BTreeMap;

use femtile_device::parallel;

use crate::check::first_of_coincident;
use crate::{CellShape, Mesh};

/// File cells that a thread divides at a time.
const CELLS: usize = 4096;

/// The cells of a file that were divided into the simplices of a mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Division {
    /// Shape of each cell of the highest dimension, in the order of the file. A collapsed cell counts as the shape that its distinct
    /// corners form; if that has no name, as the shape in the file.
    pub shapes: Vec<CellShape>,
    /// Number of simplices into which they were divided.
    pub n_parts: usize,
}

impl Division {
    /// The cell field with the number of the cell in the file that each simplex is a part of; cells of the highest dimension are
    /// counted from 0 in the order of the file.
    pub const FIELD: &str = "cell_of_file";

    /// Number of cells of each shape.
    pub fn counts(&self) -> BTreeMap<CellShape, usize> {
        let mut counts = BTreeMap::new();
        self.shapes.iter().for_each(|&shape| *counts.entry(shape).or_default() += 1);
        counts
    }

    /// Returns the cells and their parts in words, such as `2 prisms and 1 tetrahedron, divided into 7 tetrahedra`.
    pub fn note(&self) -> String {
        let of_shape = |(shape, n): (CellShape, usize)| shape.count(n);
        let each: Vec<String> = self.counts().into_iter().rev().map(of_shape).collect();
        let list = match &each[..] {
            [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
            all => all.concat(),
        };
        let is_plane = self.shapes.first().is_some_and(|shape| shape.dimension() == 2);
        let part = if is_plane { CellShape::Triangle } else { CellShape::Tetrahedron };
        format!("{list}, divided into {}", part.count(self.n_parts))
    }
}

impl Mesh {
    /// Returns kind and number of the cell of the file that a simplex is a part of; none if the cells of the file were not divided.
    pub(crate) fn cell_of_file(&self, cell: usize) -> Option<String> {
        let (division, field) = (self.division.as_ref()?, self.cell_fields.get(Division::FIELD)?);
        let number = *field.values.get(cell)? as usize;
        Some(format!("{} {number} of the file", division.shapes.get(number)?))
    }
}

/// Cells of one shape, in the order of the file.
pub(crate) struct CellsOfShape<'a> {
    pub shape: CellShape,
    /// `[n_cells × shape.n_nodes()]`.
    pub nodes: &'a [u32],
    /// Number of each cell among all entries of the file, ascending.
    pub entries: &'a [u32],
}

/// A cell of a list of [`CellsOfShape`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct CellOfShape {
    /// Number of the shape in the list.
    pub shape: usize,
    /// Number of the cell among those of the shape.
    pub cell: usize,
}

/// Simplices of cells, those of one cell after another, cells in the order of the file.
pub(crate) struct Simplices {
    /// Nodes of each simplex.
    pub nodes: Vec<u32>,
    /// Number of the cell in the file that each is a part of.
    pub cell_of: Vec<u32>,
    /// All cells in the order of the file.
    pub cells: Vec<CellOfShape>,
    pub division: Division,
}

/// Numbers of points by which diagonals are chosen: points in the same place have one.
#[derive(Debug, Default)]
pub(crate) struct CornerNumbers {
    /// The first point in the place of each; empty if no two points coincide.
    first: Vec<u32>,
}

impl CornerNumbers {
    /// The numbers of points that some cells use.
    ///
    /// # Cost
    /// A sort of 16 bytes per point by all threads; 4 bytes per point are kept if some coincide.
    pub(crate) fn of(points: &[[f64; 3]], cells: &[&[u32]]) -> Self {
        Self { first: first_of_coincident(points, cells) }
    }

    /// The number that decides, and that of the point for cells with two points in one place.
    fn key(&self, node: u32) -> (u32, u32) {
        (self.first.get(node as usize).copied().unwrap_or(node), node)
    }
}

/// Divides cells into simplices.
///
/// # Cost
/// One pass over the cells by all threads after one that merges their order; writes at most six tetrahedra, 120 bytes, a cell.
/// # Errors
/// The first cell, by its number in the file, whose repeated nodes leave no solid or polygon.
pub(crate) fn divide(shapes: &[CellsOfShape<'_>], numbers: &CornerNumbers) -> Result<Simplices, usize> {
    let cells = in_file_order(shapes);
    let blocks = parallel::map_chunks(&cells, CELLS, |first, cells| Parts::of(shapes, numbers, first, cells));
    let blocks = blocks.into_iter().collect::<Result<Vec<_>, _>>()?;
    let n_parts = blocks.iter().map(|block| block.cell_of.len()).sum();
    let mut all = Parts {
        nodes: Vec::with_capacity(blocks.iter().map(|block| block.nodes.len()).sum()),
        cell_of: Vec::with_capacity(n_parts),
        shapes: Vec::with_capacity(cells.len()),
    };
    for Parts { nodes, cell_of, shapes } in blocks {
        all.nodes.extend(nodes);
        all.cell_of.extend(cell_of);
        all.shapes.extend(shapes);
    }
    let division = Division { shapes: all.shapes, n_parts: all.cell_of.len() };
    Ok(Simplices { nodes: all.nodes, cell_of: all.cell_of, cells, division })
}

/// Simplices of some cells that follow each other in the file.
#[derive(Default)]
struct Parts {
    nodes: Vec<u32>,
    cell_of: Vec<u32>,
    shapes: Vec<CellShape>,
}

impl Parts {
    fn of(
        shapes: &[CellsOfShape<'_>],
        numbers: &CornerNumbers,
        first: usize,
        cells: &[CellOfShape],
    ) -> Result<Self, usize> {
        let mut parts = Self::default();
        for (number, &CellOfShape { shape, cell }) in (first..).zip(cells) {
            let CellsOfShape { shape, nodes, .. } = shapes[shape];
            let n = shape.n_nodes();
            parts.shapes.push(cut(shape, &nodes[cell * n..][..n], numbers, &mut parts.nodes).ok_or(number)?);
            parts.cell_of.resize(parts.nodes.len() / (shape.dimension() + 1), number as u32);
        }
        Ok(parts)
    }
}

/// Merges the cells of all shapes in the order of the file.
fn in_file_order(shapes: &[CellsOfShape<'_>]) -> Vec<CellOfShape> {
    let mut next = vec![0; shapes.len()];
    let n_cells = shapes.iter().map(|of| of.entries.len()).sum();
    let mut order = Vec::with_capacity(n_cells);
    let entry = |shape: usize, next: &[usize]| shapes[shape].entries.get(next[shape]).copied();
    while let Some(shape) = (0..shapes.len())
        .filter(|&shape| entry(shape, &next).is_some())
        .min_by_key(|&shape| entry(shape, &next))
    {
        // Cells of a shape mostly follow each other.
        let others = (0..shapes.len()).filter(|&other| other != shape);
        let limit = others.filter_map(|other| entry(other, &next)).min();
        let cells = &shapes[shape].entries[next[shape]..];
        let n = limit.map_or(cells.len(), |limit| cells.partition_point(|&entry| entry <= limit));
        order.extend((next[shape]..next[shape] + n).map(|cell| CellOfShape { shape, cell }));
        next[shape] += n;
    }
    order
}

/// Returns whether a cell of two or three dimensions has a node twice.
pub(crate) fn is_collapsed(nodes: &[u32]) -> bool {
    (1..nodes.len()).any(|i| nodes[..i].contains(&nodes[i]))
}

/// Appends the simplices of a cell and returns its shape; of a collapsed cell that of its distinct corners. None if they leave no
/// solid or polygon.
fn cut(shape: CellShape, nodes: &[u32], numbers: &CornerNumbers, parts: &mut Vec<u32>) -> Option<CellShape> {
    if shape.is_simplex() {
        parts.extend_from_slice(nodes);
        return Some(shape);
    }
    if shape.dimension() == 2 {
        let polygon = Polygon::of(nodes.iter().copied());
        polygon.triangles(numbers).for_each(|triangle| parts.extend(triangle));
        return match (polygon.is_simple(), polygon.n) {
            (true, 4) => Some(shape),
            (true, 3) => Some(CellShape::Triangle),
            _ => None,
        };
    }
    let mut faces = [Polygon::NONE; 6];
    let mut n_faces = 0;
    for local in shape.facets() {
        faces[n_faces] = Polygon::of(local.iter().map(|&i| nodes[i]));
        n_faces += usize::from(faces[n_faces].n > 2);
    }
    let faces = &faces[..n_faces];
    let is_collapsed = is_collapsed(nodes);
    let shape = if is_collapsed { shape_of(faces, shape)? } else { shape };
    let lowest = *nodes.iter().min_by_key(|&&node| numbers.key(node))?;
    let mut triangles = [[0; 3]; 12];
    let mut n = 0;
    let opposite = faces.iter().filter(|face| !face.nodes().contains(&lowest));
    for triangle in opposite.flat_map(|face| face.triangles(numbers)) {
        triangles[n] = triangle;
        n += 1;
    }
    let triangles = &triangles[..n];
    if shape == CellShape::Hexahedron && !is_collapsed {
        let place = nodes.iter().position(|&node| node == lowest)?;
        let opposite = nodes[OPPOSITE[place]];
        let is_at = |triangle: &&[u32; 3]| triangle.contains(&opposite);
        if triangles.iter().filter(is_at).count() == 3 {
            let others = triangles.iter().filter(|triangle| !is_at(triangle));
            others.for_each(|triangle| parts.extend(between(*triangle, lowest)));
            // The triangle between the other ends of the edges of the opposite corner.
            let mut at = triangles.iter().filter(is_at);
            let (first, second) = (at.next()?, at.next()?);
            let third = *second.iter().find(|node| !first.contains(node))?;
            let turn = first.iter().position(|&node| node == opposite)?;
            let [p, q] = [first[(turn + 1) % 3], first[(turn + 2) % 3]];
            parts.extend([opposite, q, p, third]);
            parts.extend([q, p, third, lowest]);
            return Some(shape);
        }
    }
    triangles.iter().for_each(|triangle| parts.extend(between(*triangle, lowest)));
    (n > 0).then_some(shape)
}

/// The corner of a hexahedron that shares no face with each.
const OPPOSITE: [usize; 8] = [6, 7, 4, 5, 2, 3, 0, 1];

/// The tetrahedron between a triangle, whose normal points away from the apex, and the apex.
fn between([a, b, c]: [u32; 3], apex: u32) -> [u32; 4] {
    [a, c, b, apex]
}

/// Returns the shape of a solid by its faces; none if they do not enclose one. `other` is that of no other name.
fn shape_of(faces: &[Polygon], other: CellShape) -> Option<CellShape> {
    let mut edges = Vec::with_capacity(24);
    for face in faces {
        let nodes = face.nodes();
        edges.extend((0..nodes.len()).map(|i| [nodes[i], nodes[(i + 1) % nodes.len()]]));
    }
    edges.sort_unstable();
    let is_once = edges.windows(2).all(|pair| pair[0] != pair[1]);
    let has_reverse = edges.iter().all(|&[a, b]| edges.binary_search(&[b, a]).is_ok());
    let n_nodes = edges.chunk_by(|a, b| a[0] == b[0]).count();
    let is_sphere = n_nodes + faces.len() == edges.len() / 2 + 2;
    if !(is_once && has_reverse && is_sphere && faces.iter().all(Polygon::is_simple)) {
        return None;
    }
    let n_triangles = faces.iter().filter(|face| face.n == 3).count();
    Some(match (n_nodes, n_triangles, faces.len()) {
        (4, 4, 4) => CellShape::Tetrahedron,
        (5, 4, 5) => CellShape::Pyramid,
        (6, 2, 5) => CellShape::Prism,
        _ => other,
    })
}

/// A facet, of which nodes that follow themselves count once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Polygon {
    nodes: [u32; 4],
    n: usize,
}

impl Polygon {
    const NONE: Self = Self { nodes: [0; 4], n: 0 };

    /// The polygon of at most four nodes.
    pub(crate) fn of(nodes: impl Iterator<Item = u32>) -> Self {
        let mut polygon = Self::NONE;
        for node in nodes {
            if polygon.nodes().last() != Some(&node) {
                polygon.nodes[polygon.n] = node;
                polygon.n += 1;
            }
        }
        if polygon.n > 1 && polygon.nodes[0] == polygon.nodes[polygon.n - 1] {
            polygon.n -= 1;
        }
        polygon
    }

    pub(crate) fn nodes(&self) -> &[u32] {
        &self.nodes[..self.n]
    }

    /// Returns whether it has three distinct corners or more, and no node comes twice.
    pub(crate) fn encloses_area(&self) -> bool {
        self.n > 2 && self.is_simple()
    }

    /// Returns whether no node comes twice.
    fn is_simple(&self) -> bool {
        !is_collapsed(self.nodes())
    }

    /// The triangles into which the diagonal from the corner of the lowest number divides it; none of less than three nodes.
    pub(crate) fn triangles(&self, numbers: &CornerNumbers) -> impl Iterator<Item = [u32; 3]> + use<> {
        let Self { nodes, n } = *self;
        let lowest = (0..n).min_by_key(|&i| numbers.key(nodes[i])).unwrap_or(0);
        (2..n).map(move |i| [nodes[lowest], nodes[(lowest + i - 1) % n], nodes[(lowest + i) % n]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Corners of a cell of each shape, sheared so that all its faces are plane.
    fn corners(shape: CellShape) -> Vec<[f64; 3]> {
        let cube = [
            [0.0, 0.0, 0.0],
            [1.0, 0.0, 0.0],
            [1.0, 1.0, 0.0],
            [0.0, 1.0, 0.0],
            [0.0, 0.0, 1.0],
            [1.0, 0.0, 1.0],
            [1.0, 1.0, 1.0],
            [0.0, 1.0, 1.0],
        ];
        let of: &[usize] = match shape {
            CellShape::Pyramid => &[0, 1, 2, 3, 4],
            CellShape::Prism => &[0, 1, 3, 4, 5, 7],
            _ => &[0, 1, 2, 3, 4, 5, 6, 7],
        };
        of.iter().map(|&i| cube[i]).map(|[x, y, z]| [2.0 * x + 0.3 * z, y - 0.2 * x, z + 0.1 * y]).collect()
    }

    fn volume(points: impl Fn(u32) -> [f64; 3], nodes: &[u32]) -> f64 {
        let p = |i: usize| points(nodes[i]);
        let [a, b, c] = [1, 2, 3].map(|i| std::array::from_fn::<f64, 3, _>(|d| p(i)[d] - p(0)[d]));
        let cross = |i: usize, j: usize| b[i] * c[j] - b[j] * c[i];
        (a[0] * cross(1, 2) + a[1] * cross(2, 0) + a[2] * cross(0, 1)) / 6.0
    }

    /// Passes all permutations of numbers on.
    fn permute(numbers: &mut [u32], n: usize, each: &mut impl FnMut(&[u32])) {
        if n <= 1 {
            return each(numbers);
        }
        for i in 0..n {
            numbers.swap(i, n - 1);
            permute(numbers, n - 1, each);
            numbers.swap(i, n - 1);
        }
    }

    /// Facets of tetrahedra that are not shared, each from its lowest number, ascending.
    fn surface(parts: &[u32]) -> Vec<[u32; 3]> {
        let turned = |mut facet: [u32; 3]| {
            let lowest = (0..3).min_by_key(|&i| facet[i]).unwrap();
            facet.rotate_left(lowest);
            facet
        };
        let facets = crate::CellKind::Tetrahedron.facets();
        let of_part = |part: &[u32]| -> Vec<[u32; 3]> {
            facets.iter().map(|facet| turned([part[facet[0]], part[facet[1]], part[facet[2]]])).collect()
        };
        let mut all: Vec<[u32; 3]> = parts.chunks(4).flat_map(of_part).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|pair| pair[0] != pair[1]), "{parts:?}");
        let whole = all.clone();
        all.retain(|&[a, b, c]| whole.binary_search(&[a, c, b]).is_err());
        all
    }

    /// Asserts that the parts of a cell are positive, fill it, and have its faces, cut from their lowest corners.
    fn assert_fills(shape: CellShape, nodes: &[u32], points: &dyn Fn(u32) -> [f64; 3]) -> (CellShape, usize) {
        let mut parts = Vec::new();
        let found = cut(shape, nodes, &CornerNumbers::default(), &mut parts).unwrap();
        let volumes: Vec<f64> = parts.chunks(4).map(|part| volume(points, part)).collect();
        assert!(volumes.iter().all(|&volume| volume > 1e-3), "{shape} {nodes:?}: {volumes:?}");
        let polygons = shape.facets().iter().map(|facet| Polygon::of(facet.iter().map(|&i| nodes[i])));
        let mut faces: Vec<[u32; 3]> =
            polygons.flat_map(|polygon| polygon.triangles(&CornerNumbers::default())).collect();
        // Each triangle begins with its lowest node or not.
        faces.iter_mut().for_each(|face| {
            let lowest = (0..3).min_by_key(|&i| face[i]).unwrap();
            face.rotate_left(lowest);
        });
        // The volume by the divergence theorem.
        let enclosed: f64 = faces.iter().map(|&[a, b, c]| volume(points, &[a, c, b, nodes[0]])).sum();
        assert!((volumes.iter().sum::<f64>() - enclosed).abs() < 1e-12, "{shape} {nodes:?}");
        faces.sort_unstable();
        assert_eq!(surface(&parts), faces, "{shape} {nodes:?}");
        (found, volumes.len())
    }

    #[test]
    fn parts_fill_a_cell_and_cut_its_faces_alike_for_every_order_of_its_numbers() {
        for (shape, least, most, expected) in [
            (CellShape::Pyramid, 2, 2, 1.0 / 3.0),
            (CellShape::Prism, 3, 3, 0.5),
            (CellShape::Hexahedron, 5, 6, 1.0),
        ] {
            let corners = corners(shape);
            let (mut numbers, n): (Vec<u32>, usize) = ((0..corners.len() as u32).collect(), corners.len());
            let mut counts = BTreeMap::<usize, usize>::new();
            permute(&mut numbers, n, &mut |nodes| {
                let place = |node| nodes.iter().position(|&other| other == node).unwrap();
                let (found, n_parts) = assert_fills(shape, nodes, &|node| corners[place(node)]);
                assert_eq!(found, shape);
                *counts.entry(n_parts).or_default() += 1;
            });
            assert!(counts.keys().copied().eq(least..=most), "{shape}: {counts:?}");
            let mut parts = Vec::new();
            cut(shape, &numbers, &CornerNumbers::default(), &mut parts).unwrap();
            let sum: f64 = parts.chunks(4).map(|part| volume(|node| corners[node as usize], part)).sum();
            // 1.994 is the determinant of the shear.
            assert!((sum - 1.994 * expected).abs() < 1e-12, "{shape}: {sum}");
        }
    }

    #[test]
    fn collapsed_cells_are_cut_as_the_cells_that_they_are() {
        use CellShape::{Hexahedron, Prism, Pyramid, Tetrahedron};
        for (shape, nodes, expected, n_parts) in [
            (Hexahedron, &[0, 1, 2, 2, 4, 5, 6, 6][..], Prism, 3),
            (Hexahedron, &[0, 1, 2, 3, 4, 4, 6, 7], Hexahedron, 5),
            (Hexahedron, &[0, 1, 2, 3, 4, 4, 4, 4], Pyramid, 2),
            (Hexahedron, &[0, 1, 2, 2, 4, 4, 4, 4], Tetrahedron, 1),
            (Hexahedron, &[7, 6, 5, 5, 3, 3, 3, 3], Tetrahedron, 1),
            (Prism, &[0, 1, 2, 3, 3, 3], Tetrahedron, 1),
            (Prism, &[0, 1, 2, 3, 4, 2], Pyramid, 2),
            (Pyramid, &[0, 1, 2, 2, 4], Tetrahedron, 1),
        ] {
            // The corners that become one move to their mean.
            let corners = corners(shape);
            let point = |node: u32| {
                let at: Vec<_> = (0..nodes.len()).filter(|&i| nodes[i] == node).collect();
                std::array::from_fn(|d| at.iter().map(|&i| corners[i][d]).sum::<f64>() / at.len() as f64)
            };
            let (found, n) = assert_fills(shape, nodes, &point);
            assert_eq!((found, n), (expected, n_parts), "{nodes:?}");
        }
        for nodes in [[0, 1, 2, 3, 0, 1, 2, 3], [0, 1, 0, 3, 4, 5, 6, 7], [0, 1, 2, 3, 4, 5, 0, 7], [1; 8]] {
            assert_eq!(
                cut(Hexahedron, &nodes, &CornerNumbers::default(), &mut Vec::new()),
                None,
                "{nodes:?}"
            );
        }
        assert_eq!(
            cut(CellShape::Quadrilateral, &[0, 1, 0, 3], &CornerNumbers::default(), &mut Vec::new()),
            None
        );
        let mut parts = Vec::new();
        assert_eq!(
            cut(CellShape::Quadrilateral, &[0, 1, 2, 2], &CornerNumbers::default(), &mut parts),
            Some(CellShape::Triangle)
        );
        assert_eq!(parts, [0, 1, 2]);
        parts.clear();
        assert_eq!(
            cut(CellShape::Quadrilateral, &[5, 4, 3, 9], &CornerNumbers::default(), &mut parts),
            Some(CellShape::Quadrilateral)
        );
        assert_eq!(parts, [3, 9, 5, 3, 5, 4]);
    }

    #[test]
    fn cells_are_numbered_in_the_order_of_the_file_and_counted_in_words() {
        let tetrahedra = CellsOfShape { shape: CellShape::Tetrahedron, nodes: &[0, 1, 2, 3], entries: &[4] };
        let nodes = [0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 7, 8];
        let prisms = CellsOfShape { shape: CellShape::Prism, nodes: &nodes, entries: &[1, 7] };
        let found = divide(&[tetrahedra, prisms], &CornerNumbers::default()).ok().unwrap();
        assert_eq!(found.cell_of, [0, 0, 0, 1, 2, 2, 2]);
        assert_eq!(found.division.note(), "2 prisms and 1 tetrahedron, divided into 7 tetrahedra");
        let order: Vec<_> = found.cells.iter().map(|at| (at.shape, at.cell)).collect();
        assert_eq!(order, [(1, 0), (0, 0), (1, 1)]);
        let collapsed = CellsOfShape { shape: CellShape::Pyramid, nodes: &[0, 1, 0, 1, 2], entries: &[0] };
        assert_eq!(divide(&[collapsed], &CornerNumbers::default()).err(), Some(0));
    }
}
