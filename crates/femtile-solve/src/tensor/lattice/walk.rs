//! Rows of cells found from neighbour to neighbour.

use std::collections::VecDeque;

use femtile_device::parallel;
use femtile_space::TensorSpace;
use rayon::prelude::*;

/// The message if adjacent cells have no common nodes.
pub(super) const CRACKS: &str =
    "cells that touch do not share their nodes (merge = true in [mesh] joins them)";

/// Nodes of a face, ascending; an edge is padded with the largest number.
type Face = [u32; 4];

/// The cells of each face.
struct Faces {
    n_sides: usize,
    /// Faces of all cells, sorted, each with its place: `n_sides` times the position of the cell, and the side.
    sorted: Vec<(Face, usize)>,
    /// The range of equal faces of each place: `[n_cells][n_sides]`.
    runs: Vec<[usize; 2]>,
}

impl Faces {
    fn new(space: &TensorSpace<'_>) -> Self {
        let n_sides = 2 * space.dimension();
        let of_place = |place| (face(space.corners(place / n_sides), place % n_sides), place);
        let mut sorted = parallel::map(space.n_cells() * n_sides, 256, of_place);
        sorted.par_sort_unstable();
        let (mut runs, mut begin) = (vec![[0; 2]; sorted.len()], 0);
        for run in sorted.chunk_by(|a, b| a.0 == b.0) {
            run.iter().for_each(|(_, place)| runs[*place] = [begin, begin + run.len()]);
            begin += run.len();
        }
        Self { n_sides, sorted, runs }
    }

    /// Iterates over the positions of the cells, ascending, that share the face at a side of a cell.
    fn cells(&self, position: usize, side: usize) -> impl Iterator<Item = usize> {
        let [begin, end] = self.runs[position * self.n_sides + side];
        self.sorted[begin..end].iter().map(|(_, place)| place / self.n_sides)
    }
}

/// Returns the lattice lines of each node of the mesh along three axes: those of the first cell, continued from cell to cell,
/// the first one reversed if they are left-handed. Nodes without cells have none.
///
/// # Errors
/// Cells that are not connected by faces.
pub(super) fn numbers(space: &TensorSpace<'_>) -> Result<Vec<[u32; 3]>, String> {
    let d = space.dimension();
    let faces = Faces::new(space);
    let mut found: Vec<Option<[i32; 3]>> = vec![None; space.mesh().n_nodes()];
    let mut is_known = vec![false; space.n_cells()];
    let mut waiting = VecDeque::new();
    for (bits, &node) in space.corners(0).iter().enumerate() {
        found[node as usize] = Some([0, 1, 2].map(|axis| (bits >> axis & 1) as i32));
    }
    is_known[0] = true;
    waiting.push_back(0);
    while let Some(position) = waiting.pop_front() {
        let corners = space.corners(position);
        for side in 0..2 * d {
            for next in faces.cells(position, side) {
                if !std::mem::replace(&mut is_known[next], true) {
                    let outwards = step(corners, side, &found);
                    carry_on(space.corners(next), &face(corners, side), outwards, &mut found);
                    waiting.push_back(next);
                }
            }
        }
    }
    if is_known.contains(&false) {
        return Err(CRACKS.into());
    }
    Ok(from_zero(found, is_left_handed(space)))
}

/// Returns the nodes of a side of a cell: across axis `side / 2`, the lower or the upper one.
fn face(corners: &[u32], side: usize) -> Face {
    let is_there = |bits: &usize| bits >> (side / 2) & 1 == side % 2;
    let mut nodes: Face = [u32::MAX; 4];
    let found = (0..corners.len()).filter(is_there).map(|bits| corners[bits]);
    nodes.iter_mut().zip(found).for_each(|(to, node)| *to = node);
    nodes.sort_unstable();
    nodes
}

/// From a cell to its neighbour beyond a side: at most a line along each axis, so that numbers stay below
/// that of the cells also if these do not stand in rows.
fn step(corners: &[u32], side: usize, found: &[Option<[i32; 3]>]) -> [i32; 3] {
    let upper = (side % 2) << (side / 2);
    let [from, to] =
        [upper ^ (1 << (side / 2)), upper].map(|bits| found[corners[bits] as usize].unwrap_or_default());
    [0, 1, 2].map(|axis| (to[axis] - from[axis]).signum())
}

/// Returns the lattice lines of the nodes of a cell beyond a face.
fn carry_on(corners: &[u32], face: &[u32], outwards: [i32; 3], found: &mut [Option<[i32; 3]>]) {
    let is_on_face = |bits: usize| face.binary_search(&corners[bits]).is_ok();
    for bits in (0..corners.len()).filter(|bits| !is_on_face(*bits)) {
        let across = (0..corners.len().ilog2()).map(|axis| bits ^ (1 << axis)).find(|bits| is_on_face(*bits));
        let near = across.and_then(|bits| found[corners[bits] as usize]).unwrap_or_default();
        found[corners[bits] as usize].get_or_insert([0, 1, 2].map(|axis| near[axis] + outwards[axis]));
    }
}

/// Renumbers lines from zero along each axis, along the first one optionally backwards.
fn from_zero(found: Vec<Option<[i32; 3]>>, backwards: bool) -> Vec<[u32; 3]> {
    let turned: Vec<Option<[i32; 3]>> =
        found.into_iter().map(|at| at.map(|[x, y, z]| [if backwards { -x } else { x }, y, z])).collect();
    let least = [0, 1, 2].map(|axis| turned.iter().flatten().map(|at| at[axis]).min().unwrap_or(0));
    let number = |at: Option<[i32; 3]>| {
        at.map_or([u32::MAX; 3], |at| [0, 1, 2].map(|axis| (at[axis] - least[axis]) as u32))
    };
    turned.into_iter().map(number).collect()
}

/// Returns whether the axes of the first cell are left-handed at its first corner.
pub(super) fn is_left_handed(space: &TensorSpace<'_>) -> bool {
    let points = &space.mesh().points;
    let corner = |bits: usize| points[space.corners(0)[bits] as usize];
    let edge = |axis: usize| super::lines::difference(corner(1 << axis), corner(0));
    let (x, y) = (edge(0), edge(1));
    let z = if space.dimension() == 3 { edge(2) } else { [0.0, 0.0, 1.0] };
    let cross = [0, 1, 2].map(|i| x[(i + 1) % 3] * y[(i + 2) % 3] - x[(i + 2) % 3] * y[(i + 1) % 3]);
    (0..3).map(|i| cross[i] * z[i]).sum::<f64>() < 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
    use femtile_mesh::{CellKind, Mesh};
    use std::collections::HashMap;

    /// Cells in a pseudorandom order.
    fn shuffled(mut mesh: Mesh) -> Mesh {
        let (n, per_cell) = (mesh.n_cells(), mesh.kind.n_nodes());
        let cells = (0..n).flat_map(|cell| mesh.cell(cell * 101 % n).to_vec()).collect::<Vec<u32>>();
        assert_eq!(cells.len(), n * per_cell);
        mesh.cells = cells;
        mesh
    }

    #[test]
    fn nodes_of_a_box_are_on_the_lines_that_they_were_made_on() {
        let split = BoxSplit::Hexahedron;
        let cubes = |cells| box_mesh(&BoxConfig { cells, split, ..BoxConfig::default() }).unwrap();
        let split = SquareSplit::Quadrilateral;
        let squares = |cells| square(&SquareConfig { cells, split, ..SquareConfig::default() }).unwrap();
        for (mesh, [nx, ny]) in [
            (cubes([1, 1, 1]), [1, 1]),
            (cubes([7, 3, 5]), [7, 3]),
            (cubes([2, 1, 13]), [2, 1]),
            (squares([5, 11]), [5, 11]),
        ] {
            let mesh = shuffled(mesh);
            let space = TensorSpace::new(&mesh, 2).unwrap();
            let made =
                |node: usize| [node % (nx + 1), node / (nx + 1) % (ny + 1), node / ((nx + 1) * (ny + 1))];
            let expected: Vec<[u32; 3]> =
                (0..mesh.n_nodes()).map(|node| made(node).map(|at| at as u32)).collect();
            assert_eq!(numbers(&space).unwrap(), expected);
        }
    }

    /// Splits each triangle of a square into three quadrilaterals.
    fn split_triangles(n: usize) -> Mesh {
        let triangles = square(&SquareConfig { cells: [n; 2], ..SquareConfig::default() }).unwrap();
        let (mut points, mut cells) = (triangles.points.clone(), Vec::new());
        let mut of_edges = HashMap::new();
        for cell in 0..triangles.n_cells() {
            let nodes = triangles.cell(cell);
            let mean = |nodes: &[u32]| {
                let sum = |axis: usize| {
                    nodes.iter().map(|&node| triangles.points[node as usize][axis]).sum::<f64>()
                };
                [0, 1, 2].map(|axis| sum(axis) / nodes.len() as f64)
            };
            let middles = [0, 1, 2].map(|i| {
                let [a, b] = [nodes[i], nodes[(i + 1) % 3]];
                *of_edges.entry([a.min(b), a.max(b)]).or_insert_with(|| {
                    points.push(mean(&[a, b]));
                    points.len() as u32 - 1
                })
            });
            let centre = points.len() as u32;
            points.push(mean(nodes));
            (0..3).for_each(|i| cells.extend([nodes[i], middles[i], centre, middles[(i + 2) % 3]]));
        }
        Mesh::new(points, CellKind::Quadrilateral, cells).unwrap()
    }

    #[test]
    fn numbers_stay_below_that_of_the_cells_where_these_do_not_stand_in_rows() {
        let mesh = split_triangles(24);
        let found = numbers(&TensorSpace::new(&mesh, 1).unwrap()).unwrap();
        assert!(found.iter().flatten().all(|&number| (number as usize) < mesh.n_cells()));
    }

    #[test]
    fn cells_that_hang_together_by_an_edge_alone_are_refused() {
        let config = BoxConfig { cells: [2, 2, 1], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
        let mut mesh = box_mesh(&config).unwrap();
        mesh.cells = [mesh.cell(0), mesh.cell(3)].concat();
        assert_eq!(numbers(&TensorSpace::new(&mesh, 1).unwrap()).unwrap_err(), CRACKS);
    }
}
