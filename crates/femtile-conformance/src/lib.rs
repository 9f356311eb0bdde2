//! What tests of several crates share: mesh files in every encoding, counted memory, all GPU kernels.

use femtile::device::cuda::Specialisation;

pub mod allocation;
pub mod emulator;
pub mod mesh_files;
pub mod suite;

/// The GPU programs that Femtile ships: a representative set, or every one that a solve may ask for.
pub fn specialisations(all: bool) -> Vec<Specialisation> {
    // Every program counts as representative as long as there are no more than some hundred kernels.
    let _ = all;
    [
        femtile::device::cuda::specialisations(),
        femtile::linalg::cuda_specialisations(),
        suite::headers::specialisations(),
        femtile::fem::cuda_specialisations(),
    ]
    .concat()
}
