//! Geometric multigrid on boxes on a GPU, compared with that on a CPU.

mod cycles;
mod levels;
mod mapped;
mod plane;
mod published_kernels;
mod refusals;
mod smoother;
mod solves;

use femtile::device::Scalar;
use femtile::multigrid::BoxGrid;

use super::problems::Random;

pub use cycles::{
    boxes_of_any_extents_take_the_cycle_of_the_reference, cycles_with_free_sides_are_those_of_the_reference,
};
pub use levels::{residuals_agree_with_the_reference, transfers_keep_functions_and_integrals};
pub use mapped::{
    cycles_on_mapped_cells_are_those_of_the_reference, residuals_on_mapped_cells_agree_with_the_reference,
    solves_on_mapped_cells_take_the_iterations_of_the_reference,
    steps_on_mapped_cells_agree_with_the_reference,
};
pub use plane::{
    cycles_in_the_plane_are_those_of_the_reference, residuals_in_the_plane_agree_with_the_reference,
    solves_in_the_plane_take_the_iterations_of_the_reference, steps_in_the_plane_agree_with_the_reference,
    surrogates_in_the_plane_agree_with_the_reference, transfers_in_the_plane_keep_functions_and_integrals,
};
pub use published_kernels::published_kernels_agree_with_the_fused_kernel;
pub use refusals::grids_of_other_shapes_are_refused;
pub use smoother::{
    all_ways_to_solve_on_patches_agree, free_sides_are_smoothed_as_by_the_reference,
    shapes_of_blocks_change_nothing, steps_of_the_smoother_agree_with_the_reference,
};
pub use solves::{full_multigrid_takes_the_cycles_of_the_reference, krylov_methods_take_cycles_and_products};

/// A box of equal cells, with another width along each axis, none of them two thirds of another; in the plane where the last
/// count is zero.
fn cells(degree: usize, counts: [usize; 3]) -> BoxGrid {
    of_widths(degree, [0, 1, 2].map(|axis| vec![[0.3, 0.21, 0.7][axis]; counts[axis]]))
}

/// A box of cells of these widths, none along the last axis in the plane.
fn of_widths(degree: usize, widths: [Vec<f64>; 3]) -> BoxGrid {
    let dimension = if widths[2].is_empty() { 2 } else { 3 };
    BoxGrid::new(degree, &widths[..dimension]).unwrap()
}

/// Free sides: a lower one, an upper one, opposite ones, and all but one.
const FREE: [[[bool; 2]; 3]; 4] = [
    [[true, false], [false; 2], [false; 2]],
    [[false; 2], [false, true], [false, true]],
    [[false; 2], [true; 2], [true, false]],
    [[true; 2], [true; 2], [false, true]],
];

/// Returns the box with each choice of free sides.
fn with_free_sides(grid: &BoxGrid) -> [BoxGrid; 4] {
    FREE.map(|free| grid.clone().with_free_sides(free).unwrap())
}

/// Random values, zero at Dirichlet nodes.
fn values<T: Scalar>(grid: &BoxGrid, random: &mut Random) -> Vec<T> {
    let (nodes, free) = (grid.nodes(), grid.free_sides());
    let mut x = random.vector(grid.n_nodes());
    for (i, x) in x.iter_mut().enumerate() {
        let at = [i % nodes[0], i / nodes[0] % nodes[1], i / (nodes[0] * nodes[1])];
        let is_given = |axis: usize| {
            (at[axis] == 0 && !free[axis][0]) || (at[axis] + 1 == nodes[axis] && !free[axis][1])
        };
        if (0..grid.dimension()).any(is_given) {
            *x = T::ZERO;
        }
    }
    x
}

/// Checks every entry within a tolerance relative to the largest.
fn assert_close<T: Scalar>(found: &[T], wanted: &[T], tolerance: f64, what: &str) {
    let size = wanted.iter().fold(0.0_f64, |size, x| size.max(x.to_f64().abs()));
    for (i, (found, wanted)) in found.iter().zip(wanted).enumerate() {
        let error = (found.to_f64() - wanted.to_f64()).abs();
        assert!(error <= tolerance * size, "{what}: entry {i} is off by {error:e} of {size:e}");
    }
}

/// A box with cells of different widths.
fn uneven(degree: usize, counts: [usize; 3]) -> BoxGrid {
    let widths =
        |axis: usize| (0..counts[axis]).map(|cell| 0.2 + 0.1 * ((3 * cell + axis) % 4) as f64).collect();
    of_widths(degree, [widths(0), widths(1), widths(2)])
}
