//! Geometric multigrid on boxes of quadrilaterals on a GPU, compared with that on a CPU.

use femtile::device::Cuda;
use femtile::multigrid::BoxGrid;

use super::levels::{residual_agrees, transfers_nest};
use super::mapped::{self, as_mapped, checkered, gentle, iterations, mapped, one, smooths, straight, wavy};
use super::solves::solves_from;
use super::{cells, cycles, of_widths, uneven};
use crate::suite::Scope;

/// Free sides: a lower one, an upper one, opposite ones, and all but one.
const FREE: [[[bool; 2]; 2]; 4] = [
    [[true, false], [false; 2]],
    [[false; 2], [false, true]],
    [[false; 2], [true; 2]],
    [[true; 2], [false, true]],
];

/// Returns the box with each choice of free sides.
fn with_free_sides(grid: &BoxGrid) -> [BoxGrid; 4] {
    FREE.map(|[x, y]| grid.clone().with_free_sides([x, y, [false; 2]]).unwrap())
}

/// Residuals of every degree on rectangles and deformed cells, with fewer and more of them than a block takes.
pub fn residuals_in_the_plane_agree_with_the_reference(device: &Cuda, scope: &Scope) {
    let highest = if scope.has_every_kind { 8 } else { 4 };
    for degree in 1..=highest {
        for counts in [[4, 3, 0], [1, 1, 0], [17, 9, 0]] {
            let grids = [
                uneven(degree, counts),
                mapped(degree, counts, wavy, gentle),
                mapped(degree, counts, straight, gentle),
            ];
            for grid in grids {
                residual_agrees::<f64>(device, &grid, 1e-12);
                residual_agrees::<f32>(device, &grid, 2e-5);
                residual_agrees::<f64>(device, &with_free_sides(&grid)[degree % 4], 1e-12);
            }
        }
    }
    for grid in with_free_sides(&uneven(1, [66, 5, 0])) {
        residual_agrees::<f64>(device, &grid, 1e-12);
    }
}

/// Prolongation preserves functions, and restriction is consistent with integrals.
pub fn transfers_in_the_plane_keep_functions_and_integrals(device: &Cuda, scope: &Scope) {
    let highest = if scope.has_every_kind { 8 } else { 4 };
    for degree in 1..=highest {
        transfers_nest::<f64>(device, &uneven(degree, [5, 3, 0]), [2; 3], 1e-11);
        transfers_nest::<f32>(device, &uneven(degree, [3, 1, 0]), [2; 3], 1e-4);
        for parts in [[2, 1, 1], [1, 2, 1]] {
            transfers_nest::<f64>(device, &uneven(degree, [3, 2, 0]), parts, 1e-11);
        }
        for grid in with_free_sides(&uneven(degree, [2, 3, 0])) {
            transfers_nest::<f64>(device, &grid, [2; 3], 1e-11);
            transfers_nest::<f64>(device, &grid, [1, 2, 1], 1e-11);
        }
    }
}

/// Multiplicative steps on equal cells.
pub fn steps_in_the_plane_agree_with_the_reference(device: &Cuda, scope: &Scope) {
    for (degree, counts) in [(1, [36, 6, 0]), (2, [6, 12, 0]), (3, [4, 6, 0]), (4, [6, 4, 0])] {
        let grid = cells(degree, counts);
        smooths::<f64>(device, [&grid; 2], 1e-12);
        smooths::<f32>(device, [&grid; 2], 2e-5);
        for grid in with_free_sides(&grid) {
            smooths::<f64>(device, [&grid; 2], 1e-12);
        }
    }
    // One layer of cells with a vertex on one side, or on both.
    for free in [[true, false], [false, true], [true; 2]] {
        let layer = cells(2, [4, 1, 0]).with_free_sides([[false; 2], free, [false; 2]]).unwrap();
        smooths::<f64>(device, [&layer; 2], 1e-12);
    }
    if scope.has_every_kind {
        for degree in 1..=8 {
            let grid = cells(degree, [12, 16, 0]);
            smooths::<f64>(device, [&grid; 2], 1e-11);
            smooths::<f32>(device, [&grid; 2], 5e-5);
            for grid in with_free_sides(&grid) {
                smooths::<f64>(device, [&grid; 2], 1e-11);
            }
        }
    }
}

/// Steps with surrogates of every degree, and exact solves at jumps.
pub fn surrogates_in_the_plane_agree_with_the_reference(device: &Cuda, scope: &Scope) {
    let highest = if scope.has_every_kind { 8 } else { 4 };
    for degree in 1..=highest {
        let grid = mapped(degree, [6, 4, 0], wavy, gentle);
        smooths::<f64>(device, [&grid; 2], 1e-10);
        smooths::<f32>(device, [&grid; 2], 2e-4);
        for grid in with_free_sides(&grid) {
            smooths::<f64>(device, [&grid; 2], 1e-10);
        }
        smooths::<f64>(device, [&mapped(degree, [4, 6, 0], straight, gentle); 2], 1e-10);
    }
    for degree in 1..=if scope.has_every_kind { 6 } else { 2 } {
        smooths::<f64>(device, [&mapped(degree, [8, 4, 0], straight, checkered); 2], 1e-10);
        smooths::<f32>(device, [&mapped(degree, [4, 4, 0], straight, checkered); 2], 2e-4);
        for grid in with_free_sides(&mapped(degree, [4, 6, 0], wavy, checkered)) {
            smooths::<f64>(device, [&grid; 2], 1e-9);
        }
    }
    // Widths that differ little have surrogates, which a CPU has for mapped cells only.
    for degree in [1, 3] {
        let grid = of_widths(degree, [vec![0.3, 0.3, 0.26, 0.26], vec![0.25, 0.28, 0.24], Vec::new()]);
        for grid in with_free_sides(&grid) {
            let on_cpu = as_mapped(&grid).with_free_sides(grid.free_sides()).unwrap();
            smooths::<f64>(device, [&grid, &on_cpu], 1e-10);
        }
    }
}

/// Returns a box of pairs of rectangles of several widths, one side of it free.
fn stretched(degree: usize) -> BoxGrid {
    let grid = of_widths(degree, [vec![0.2, 0.2, 0.5, 0.5], vec![0.5, 0.5, 0.2, 0.2], Vec::new()]);
    with_free_sides(&grid)[0].clone()
}

/// Cycles on boxes of any extents, with semicoarsening and with coarsest grids of more than two cells along an axis.
pub fn cycles_in_the_plane_are_those_of_the_reference(device: &Cuda, scope: &Scope) {
    let equal = |degree, [n, m]: [usize; 2], [x, y]: [f64; 2]| {
        of_widths(degree, [vec![x; n], vec![y; m], Vec::new()])
    };
    cycles::cycles_agree::<f64>(device, &equal(1, [6, 10], [0.2; 2]), 1e-12);
    cycles::cycles_agree::<f64>(device, &equal(2, [8, 4], [1.0, 2.0]), 1e-12);
    cycles::cycles_agree::<f32>(device, &equal(3, [4, 8], [1.0, 0.3]), 1e-5);
    cycles::cycles_agree::<f64>(device, &equal(2, [2, 2], [1.0; 2]), 1e-12);
    for grid in with_free_sides(&cells(2, [8, 6, 0])) {
        cycles::cycles_agree::<f64>(device, &grid, 1e-12);
    }
    mapped::cycles_agree::<f64>(device, &mapped(1, [8, 12, 0], wavy, gentle), 1e-10);
    mapped::cycles_agree::<f32>(device, &mapped(3, [8, 4, 0], wavy, gentle), 2e-4);
    mapped::cycles_agree::<f64>(device, &mapped(2, [4, 4, 0], straight, checkered), 1e-9);
    // No level above the coarsest.
    mapped::cycles_agree::<f64>(device, &mapped(2, [2, 2, 0], wavy, gentle), 1e-10);
    for grid in with_free_sides(&mapped(2, [8, 4, 0], wavy, gentle)) {
        mapped::cycles_agree::<f64>(device, &grid, 1e-10);
    }
    if scope.has_every_kind {
        for degree in 1..=8 {
            cycles::cycles_agree::<f64>(device, &equal(degree, [12, 16], [0.1; 2]), 1e-11);
            cycles::cycles_agree::<f32>(device, &equal(degree, [32, 64], [0.1; 2]), 1e-4);
            for grid in with_free_sides(&mapped(degree, [8, 12, 0], wavy, gentle)) {
                mapped::cycles_agree::<f64>(device, &grid, 1e-10);
                mapped::cycles_agree::<f32>(device, &grid, 1e-3);
            }
        }
        cycles::cycles_agree::<f64>(device, &equal(1, [256, 192], [0.1; 2]), 1e-11);
    }
}

/// Full multigrid and preconditioned conjugate gradients.
pub fn solves_in_the_plane_take_the_iterations_of_the_reference(device: &Cuda, scope: &Scope) {
    let coarse = |degree| of_widths(degree, [vec![0.3; 2], vec![0.25; 2], Vec::new()]);
    solves_from::<f64>(device, &coarse(1), 4);
    solves_from::<f32>(device, &coarse(2), 3);
    solves_from::<f64>(device, &coarse(3), 3);
    if scope.has_every_kind {
        for degree in 1..=8 {
            solves_from::<f64>(device, &coarse(degree), 5);
            solves_from::<f32>(device, &coarse(degree), 5);
        }
    }
    let n = if scope.has_every_kind { 32 } else { 8 };
    for (name, grid) in [
        ("equal", cells(1, [n, n, 0])),
        ("equal", cells(4, [n, n, 0])),
        ("bent", mapped(1, [n, n, 0], wavy, one)),
        ("bent", mapped(2, [n, n, 0], wavy, one)),
        ("gentle", mapped(2, [n, n, 0], straight, gentle)),
        ("jumps", mapped(2, [n, n, 0], wavy, checkered)),
        ("jumps", mapped(1, [n, n, 0], straight, checkered)),
    ] {
        let [wanted, found] = iterations(device, &grid);
        let what = format!("{name}, degree {}: {found}, {wanted} on a CPU", grid.degree());
        assert!(found.abs_diff(wanted) <= 1, "{what}");
    }
    // Of rectangles that are not equal a CPU has multiplicative patches.
    let [multiplicative, additive] = iterations(device, &stretched(3));
    assert!(additive <= 2 * multiplicative, "{additive}, {multiplicative}");
}
