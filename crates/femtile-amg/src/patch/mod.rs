//! The patch smoother: $A = A_I + A_B + A_D$, with the blocks of $A_I$ solved inexactly in fast memory.

#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
mod cuda;
mod damping;
mod kernels;
mod layout;
mod reference;
#[cfg(test)]
mod tests;

pub(crate) use cuda::specialisations as cuda_specialisations;
pub(crate) use damping::{OUTER, STEPS, outer_damping};
pub use kernels::{PatchKernels, PatchSmoother};
pub use layout::PatchMatrix;
pub(crate) use layout::{Inside, Outside};
