//! Mapped cells, coefficients by cell and unequal widths on a GPU: operator, Schwarz smoothers with separable surrogates, and
//! the exact solver of the coarsest grid.

pub(super) mod coarsest;
pub(super) mod exact;
pub(super) mod operator;
mod patches;

pub use coarsest::CudaInverse;
pub use patches::CudaMappedPatches;
