//! Smoother, residual and transfers on a GPU.
//!
//! A team of threads processes a patch, with tables as constants. A cycle is recorded once and replayed. `mapped/`
//! has mapped cells, `plane/` quadrilaterals.

mod cells;
mod coarsest;
mod constants;
mod kernels;
mod mapped;
mod operator;
mod plane;
mod programs;
mod shape;
mod smoother;
mod stencil;
mod transfer;

use femtile_device::cuda::Specialisation;

use crate::MultigridError;
use crate::cell_patches::vertex_patches;
use crate::grid::BoxGrid;
use mapped::CudaMappedPatches;
pub use operator::CudaBoxOperator;
pub use programs::multigrid_programs;
pub use shape::PatchShape;
pub use smoother::{COLOUR_HEADER, CudaPatches, PatchKernel, colour, patch_matrices};
pub use transfer::CudaTransfer;

/// The highest degree with kernels.
const HIGHEST_DEGREE: usize = 8;

/// Returns the GPU programs of this crate, for each degree and precision.
pub fn specialisations() -> Vec<Specialisation> {
    [
        smoother::specialisations(),
        operator::specialisations(),
        mapped::operator::specialisations(),
        mapped::exact::specialisations(),
        mapped::coarsest::specialisations(),
        plane::specialisations(),
        transfer::specialisations(),
        coarsest::specialisations(),
        stencil::specialisations(),
        kernels::specialisations(),
    ]
    .concat()
}

/// Checks that there are kernels for a grid.
fn check(grid: &BoxGrid) -> Result<(), MultigridError> {
    if grid.degree() <= HIGHEST_DEGREE {
        return Ok(());
    }
    let message = format!("degree {}: kernels are for 1 to {HIGHEST_DEGREE}", grid.degree());
    Err(MultigridError::Gpu { message })
}

/// Checks that there are kernels for hexahedra on a grid.
fn check_hexahedra(grid: &BoxGrid) -> Result<(), MultigridError> {
    if grid.dimension() == 3 {
        return check(grid);
    }
    let message = format!("{} axes: these kernels are for hexahedra", grid.dimension());
    Err(MultigridError::Gpu { message })
}

/// Returns why GPUs do not support vertex patches on the levels below a grid, or none if they do.
pub fn unsupported_on_gpu(grid: &BoxGrid) -> Option<String> {
    let coarsest = || std::iter::successors(Some(grid.clone()), BoxGrid::coarsened).last();
    let check_coarsest = |coarsest: BoxGrid| match coarsest.mapping() {
        Some(_) => mapped::coarsest::check_unknowns(&coarsest),
        None => Ok(()),
    };
    match check_patches(grid).and_then(|()| coarsest().map_or(Ok(()), check_coarsest)) {
        Err(MultigridError::Gpu { message }) => Some(message),
        _ => None,
    }
}

/// Returns an axis that is thin on some level below a grid. CPUs solve on all cells along it at once; GPU patches end at
/// the next layer and need more iterations.
pub fn thin_axis(finest: &BoxGrid) -> Option<usize> {
    let of_level = |grid: &BoxGrid| {
        let (thin, spans) = (grid.thin_axes(), vertex_patches(grid, [false; 3]));
        (0..3).find(|&axis| thin[axis] && spans[axis].len() > 1)
    };
    std::iter::successors(Some(finest.clone()), BoxGrid::coarsened).find_map(|grid| of_level(&grid))
}

/// Checks that there are vertex-patch kernels for a grid.
fn check_patches(grid: &BoxGrid) -> Result<(), MultigridError> {
    check(grid)?;
    let has_no_vertex = |&axis: &usize| grid.widths(axis).len() == 1 && grid.free_sides()[axis] == [false; 2];
    let Some(axis) = (0..3).find(has_no_vertex) else { return Ok(()) };
    Err(MultigridError::Gpu { message: format!("axis {axis} has one layer of cells: choose two or more") })
}

/// Returns the cell width along each axis, one along an absent axis.
///
/// # Errors
/// [`MultigridError::Gpu`] for mapped cells, and if widths differ along an axis.
fn equal_widths(grid: &BoxGrid) -> Result<[f64; 3], MultigridError> {
    let grid = grid.whole();
    if grid.mapping().is_some() {
        let message =
            "cells that are not rectangular, or a coefficient other than one: choose equal rectangles";
        return Err(MultigridError::Gpu { message: message.into() });
    }
    for axis in 0..3 {
        let widths = grid.widths(axis);
        if let Some(other) = widths.iter().find(|&width| (width / widths[0] - 1.0).abs() > 1e-12) {
            let message =
                format!("axis {axis} has cells of widths {} and {other}: choose equal widths", widths[0]);
            return Err(MultigridError::Gpu { message });
        }
    }
    Ok([0, 1, 2].map(|axis| grid.widths(axis).first().copied().unwrap_or(1.0)))
}

/// Returns the factors of stiffness along each axis relative to cells of width one.
///
/// # Errors
/// [`MultigridError::Gpu`] for grids without kernels: two axes, unequal or mapped cells, or too high a degree.
pub fn stiffness_scales(grid: &BoxGrid) -> Result<[f64; 3], MultigridError> {
    check_hexahedra(grid)?;
    Ok(scales(equal_widths(grid)?))
}

/// Returns the factors of stiffness along each axis for cells of these widths, relative to width one.
fn scales(widths: [f64; 3]) -> [f64; 3] {
    let volume: f64 = widths.iter().product();
    widths.map(|width| volume / (width * width))
}
