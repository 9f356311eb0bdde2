//! Mapped cells, coefficients by cell and unequal widths on a GPU: operator, Schwarz smoothers with separable surrogates, and
//! the exact solver of the coarsest grid.

pub(super) mod coarsest;
pub(super) mod exact;
pub(super) mod operator;
mod patches;

use femtile_device::Scalar;
use femtile_device::cuda::Specialisation;

use femtile_linalg::hooks::CudaHook;

use super::smoother::additive::{Kind, compiled};
pub use coarsest::CudaInverse;
pub use patches::CudaMappedPatches;

/// Returns the programs of the smoothers: for most patches, on free sides, at coefficient jumps, and for the largest
/// eigenvalue.
pub(super) fn programs<T: Scalar>(degree: usize) -> Vec<Specialisation> {
    let of_sides = |is_mirrored| compiled::<T>(degree, Kind { is_mirrored, is_by_patch: true }).program;
    let product = || super::operator::of_product::<T>(&CudaHook::none());
    vec![of_sides(false), of_sides(true), exact::program::<T>(degree), product()]
}
