//! Meshes of quadrilaterals and hexahedra that unit tests of several crates share.

use femtile_mesh::generate::{SquareConfig, SquareSplit, square};
use femtile_mesh::{CellKind, Mesh};

/// Unit squares in the plane.
pub(crate) fn squares(nx: usize, ny: usize) -> Mesh {
    let (upper, split) = ([nx as f64, ny as f64], SquareSplit::Quadrilateral);
    square(&SquareConfig { upper, cells: [nx, ny], split, ..SquareConfig::default() }).unwrap()
}

/// Hexahedra around a ring; the last meets the first after a twist by `quarters` quarter turns.
pub(crate) fn ring(n_cells: usize, quarters: usize) -> Mesh {
    let corner = |i: usize, k: usize| {
        let (angle, turn) =
            (i as f64 / n_cells as f64 * std::f64::consts::TAU, (i * quarters) as f64 / n_cells as f64);
        let own = (k as f64 + turn) * std::f64::consts::FRAC_PI_2;
        let radius = 3.0 + own.cos();
        [radius * angle.cos(), -radius * angle.sin(), own.sin()]
    };
    let points = (0..n_cells).flat_map(|i| (0..4).map(move |k| corner(i, k))).collect();
    let cell = |i: usize| {
        let shift = if i + 1 == n_cells { quarters } else { 0 };
        let next = (i + 1) % n_cells;
        (0..8).map(move |k| if k < 4 { 4 * i + k } else { 4 * next + (k - 4 + shift) % 4 } as u32)
    };
    Mesh::new(points, CellKind::Hexahedron, (0..n_cells).flat_map(cell).collect()).unwrap()
}
