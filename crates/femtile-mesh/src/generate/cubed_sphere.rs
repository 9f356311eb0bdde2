//! Blocks of hexahedra around a cube: each side of it carries layers of cells outwards.

use super::Counts;
use super::grid::cube;
use crate::{CellKind, MeshError};

/// A cube of `cells`³ cells, hollow or full, and `layers` of cells on each of its sides.
///
/// In coordinates of the reference the cube reaches from −1 to 1 and the outermost layer lies on the cube from −2 to 2.
pub(super) struct CubedSphere {
    pub cells: usize,
    pub layers: usize,
    pub is_full: bool,
    /// Number of each node of the surface of the cube, by its place in the whole cube.
    surface: Vec<u32>,
    n_surface: usize,
}

impl CubedSphere {
    pub(super) fn new(cells: usize, layers: usize, is_full: bool) -> Self {
        let row = cells + 1;
        let mut n_surface = 0;
        let number = |i: usize| {
            let is_outside = [i % row, i / row % row, i / (row * row)].iter().any(|i| i % cells == 0);
            n_surface += usize::from(is_outside);
            if is_outside { n_surface as u32 - 1 } else { u32::MAX }
        };
        let surface = (0..row.pow(3)).map(number).collect();
        Self { cells, layers, is_full, surface, n_surface }
    }

    /// Numbers of nodes and cells of such blocks, before anything is allocated.
    pub(super) fn counts(cells: usize, layers: usize, is_full: bool) -> Result<Counts, MeshError> {
        let (n, layers) = (cells as f64, layers as f64);
        let inside = if is_full { (n + 1.0).powi(3) } else { 6.0 * n * n + 2.0 };
        let n_cells = if is_full { n.powi(3) } else { 0.0 } + 6.0 * n * n * layers;
        Counts::of("cells", CellKind::Hexahedron, inside + layers * (6.0 * n * n + 2.0), n_cells)
    }

    /// Number of the node at place `at` of the cube, `layer` layers further out.
    fn node(&self, at: [usize; 3], layer: usize) -> u32 {
        let row = self.cells + 1;
        let place = at[0] + row * (at[1] + row * at[2]);
        let first = if self.is_full { self.surface.len() } else { self.n_surface };
        match layer {
            0 if self.is_full => place as u32,
            0 => self.surface[place],
            _ => (first + (layer - 1) * self.n_surface) as u32 + self.surface[place],
        }
    }

    /// All nodes in coordinates of the reference.
    pub(super) fn points(&self) -> Vec<[f64; 3]> {
        let row = self.cells + 1;
        let on_axis = |i: usize| 2.0 * i as f64 / self.cells as f64 - 1.0;
        let at = |place: usize| [place % row, place / row % row, place / (row * row)].map(on_axis);
        let outside = || (0..self.surface.len()).filter(|&place| self.surface[place] != u32::MAX);
        let mut points: Vec<_> = if self.is_full {
            (0..self.surface.len()).map(at).collect()
        } else {
            outside().map(at).collect()
        };
        for layer in 1..=self.layers {
            let level = 1.0 + layer as f64 / self.layers as f64;
            points.extend(outside().map(|place| at(place).map(|x| level * x)));
        }
        points
    }

    /// The quadrilaterals of the sides of the cube, counter-clockwise seen from outside.
    pub(super) fn sides(&self) -> Vec<u32> {
        let n = self.cells;
        let mut cells = Vec::with_capacity(24 * n * n);
        for side in 0..6 {
            let (is_upper, [u, v]) = axes_of(side);
            for i in 0..n * n {
                let corner = |[a, b]: [usize; 2]| {
                    let mut at = [if is_upper { n } else { 0 }; 3];
                    (at[u], at[v]) = (i % n + a, i / n + b);
                    self.node(at, 0)
                };
                cells.extend([[0, 0], [1, 0], [1, 1], [0, 1]].map(corner));
            }
        }
        cells
    }

    /// All cells, positively oriented: those of the cube, then block after block.
    pub(super) fn hexahedra(&self) -> Vec<u32> {
        let n = self.cells;
        let mut cells = Vec::new();
        if self.is_full {
            for i in 0..n.pow(3) {
                let at = [i % n, i / n % n, i / (n * n)];
                let corner = |c: usize| self.node(std::array::from_fn(|d| at[d] + (c >> d & 1)), 0);
                cells.extend(cube::HEXAHEDRON.map(corner));
            }
        }
        for side in 0..6 {
            let (is_upper, [u, v]) = axes_of(side);
            for i in 0..n * n * self.layers {
                let corner = |c: usize| {
                    let mut at = [if is_upper { n } else { 0 }; 3];
                    (at[u], at[v]) = (i % n + (c & 1), i / n % n + (c >> 1 & 1));
                    self.node(at, i / (n * n) + (c >> 2))
                };
                cells.extend(cube::HEXAHEDRON.map(corner));
            }
        }
        cells
    }
}

/// Returns whether a side is the upper one of its axis, and the axes along it, right-handed about the direction outwards.
fn axes_of(side: usize) -> (bool, [usize; 2]) {
    let (axis, is_upper) = (side / 2, side % 2 == 1);
    let (u, v) = ((axis + 1) % 3, (axis + 2) % 3);
    (is_upper, if is_upper { [u, v] } else { [v, u] })
}

/// Returns the radius of a reference point, and the intersection of the ray through it with the cube from −1
/// to 1.
pub(super) fn level(p: [f64; 3]) -> (f64, [f64; 3]) {
    let level = p.iter().fold(0.0, |level: f64, x| level.max(x.abs()));
    (level, p.map(|x| x / level))
}

/// The point of the unit sphere for a point of the cube from −1 to 1, angles evenly spaced along each side.
pub(super) fn on_sphere(on_cube: [f64; 3]) -> [f64; 3] {
    let bent = on_cube.map(super::disc::tangent);
    let length = bent.iter().map(|x| x * x).sum::<f64>().sqrt();
    bent.map(|x| x / length)
}
