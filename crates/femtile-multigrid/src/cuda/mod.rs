//! Smoother, residual and transfers on a GPU, on boxes of hexahedra.

mod cells;
mod constants;
mod operator;
mod shape;
mod smoother;
mod transfer;

use femtile_device::cuda::Specialisation;

use crate::MultigridError;
use crate::grid::BoxGrid;
pub use operator::CudaBoxOperator;
pub use shape::PatchShape;
pub use smoother::{CudaPatches, PatchKernel};
pub use transfer::CudaTransfer;

/// The highest degree that there are kernels for.
const HIGHEST_DEGREE: usize = 8;

/// The programs of this crate, for checks that compile all of them: of each degree and precision.
pub fn specialisations() -> Vec<Specialisation> {
    [smoother::specialisations(), operator::specialisations(), transfer::specialisations()].concat()
}

/// Refuses grids that there are no kernels for.
fn check(grid: &BoxGrid) -> Result<(), MultigridError> {
    let message = if grid.dimension() != 3 {
        format!("{} axes: kernels are for hexahedra", grid.dimension())
    } else if grid.degree() > HIGHEST_DEGREE {
        format!("degree {}: there are kernels for 1 to {HIGHEST_DEGREE}", grid.degree())
    } else {
        return Ok(());
    };
    Err(MultigridError::Gpu { message })
}
