use femtile_device::Scalar;
use femtile_device::cuda::{Program, STRIDED_HEADER, Specialisation};

use super::super::HIGHEST_DEGREE;
use super::super::cells::CELLS_HEADER;
use super::super::shape::PatchShape;
use super::super::transfer::{EMBEDDING_HEADER, n_fine, with_tables};
use super::teams_of;

static TRANSFER: Program = Program {
    name: "plane_transfer",
    source: include_str!("transfer.cu"),
    headers: &[STRIDED_HEADER, CELLS_HEADER, EMBEDDING_HEADER],
};

pub fn shape(degree: usize, has_far: bool) -> PatchShape {
    teams_of(n_fine(degree, has_far))
}

/// Returns the shared memory of a team in bytes.
pub fn bytes<T>(degree: usize, has_far: bool) -> usize {
    (degree + 1) * (n_fine(degree, has_far) | 1) * size_of::<T>()
}

/// Returns the program for parts of a coarser cell along each axis, with or without nodes on free upper sides.
pub fn program<T: Scalar>(degree: usize, parts: [usize; 3], has_far: bool) -> Specialisation {
    shape(degree, has_far).define(with_tables(TRANSFER.of::<T>(), degree, parts, has_far))
}

/// Halves along all axes and along one represent all semicoarsenings.
pub(super) fn specialisations() -> Vec<Specialisation> {
    let of_degree = |degree: usize| {
        [([2, 2, 1], false), ([2, 1, 1], false), ([1, 2, 1], false), ([2, 2, 1], true)]
            .map(|(parts, far)| [program::<f64>(degree, parts, far), program::<f32>(degree, parts, far)])
            .concat()
    };
    (1..=HIGHEST_DEGREE).flat_map(of_degree).collect()
}
