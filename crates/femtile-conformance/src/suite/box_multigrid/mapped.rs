//! Mapped cells, coefficients by cell and unequal widths on a GPU, compared with those on a CPU.

use femtile::device::Cuda;
use femtile::multigrid::BoxGrid;

use super::FREE;
use super::levels::residual_agrees;
use crate::suite::Scope;

/// A coefficient from 1 to 3, by the cell.
fn gentle([x, y, z]: [usize; 3]) -> f64 {
    1.0 + ((3 * x + 5 * y + 2 * z) % 5) as f64 / 2.0
}

fn one(_: [usize; 3]) -> f64 {
    1.0
}

/// Bent everywhere, sides included.
fn wavy([x, y, z]: [f64; 3]) -> [f64; 3] {
    [x + 0.1 * (3.0 * y + z).sin(), y + 0.08 * (4.0 * x).sin(), z + 0.05 * z * (5.0 * x + y).cos()]
}

/// Wider along x than along y and z, by less than what leads to semicoarsening.
fn straight([x, y, z]: [f64; 3]) -> [f64; 3] {
    [1.3 * x, y, 0.9 * z]
}

/// Returns a mapped unit cube, with a coefficient by the cell.
fn mapped(
    degree: usize,
    counts: [usize; 3],
    map: impl Fn([f64; 3]) -> [f64; 3],
    coefficient: impl Fn([usize; 3]) -> f64,
) -> BoxGrid {
    let places =
        |n: [usize; 3]| (0..n[0] * n[1] * n[2]).map(move |i| [i % n[0], i / n[0] % n[1], i / (n[0] * n[1])]);
    let corner = |at: [usize; 3]| map([0, 1, 2].map(|axis| at[axis] as f64 / counts[axis] as f64));
    let corners = places(counts.map(|n| n + 1)).map(corner).collect();
    BoxGrid::mapped(degree, &counts, corners, places(counts).map(coefficient).collect()).unwrap()
}

/// Residuals of every degree on deformed cells, and on rectangles with a coefficient each.
pub fn residuals_on_mapped_cells_agree_with_the_reference(device: &Cuda, scope: &Scope) {
    let highest = if scope.has_every_kind { 8 } else { 4 };
    for degree in 1..=highest {
        for grid in [mapped(degree, [3, 2, 3], wavy, gentle), mapped(degree, [2, 3, 1], straight, gentle)] {
            residual_agrees::<f64>(device, &grid, 1e-12);
            residual_agrees::<f32>(device, &grid, 2e-5);
            residual_agrees::<f64>(device, &grid.with_free_sides(FREE[degree % 4]).unwrap(), 1e-12);
        }
    }
    // Rows processed in several parts, one of a single cell.
    residual_agrees::<f64>(device, &mapped(1, [33, 1, 2], wavy, one), 1e-12);
    residual_agrees::<f64>(device, &mapped(2, [17, 2, 1], straight, gentle), 1e-12);
}
