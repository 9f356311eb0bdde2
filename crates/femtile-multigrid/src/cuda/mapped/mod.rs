//! Mapped cells, coefficients by cell and unequal widths on a GPU: operator, Schwarz smoothers with separable surrogates, and
//! the exact solver of the coarsest grid.

pub(super) mod coarsest;
pub(super) mod exact;
pub(super) mod operator;
mod patches;

use femtile_device::Scalar;
use femtile_device::cuda::Specialisation;

use femtile_linalg::hooks::CudaHook;

use crate::grid::BoxGrid;
pub use coarsest::CudaInverse;
pub use patches::CudaMappedPatches;

/// Returns the programs of the smoothers: for most patches, on free sides, at coefficient jumps, and for the largest
/// eigenvalue.
pub(super) fn programs<T: Scalar>(grid: &BoxGrid) -> Vec<Specialisation> {
    let of_sides = |is_mirrored| patches::local_solves::<T>(grid, is_mirrored).program;
    let product = || super::operator::of_product::<T>(&CudaHook::none());
    vec![of_sides(false), of_sides(true), exact::program::<T>(grid.degree()), product()]
}
