use femtile_device::Scalar;
use femtile_device::cuda::{Program, RECIPROCAL_HEADER, STRIDED_HEADER, Specialisation};

use super::super::shape::PatchShape;
use super::{COLOUR_HEADER, NODES_HEADER, tables::Modes};

static FUSED: Program = Program {
    name: "vertex_patch_fused",
    source: include_str!("fused.cu"),
    headers: &[RECIPROCAL_HEADER, STRIDED_HEADER, COLOUR_HEADER, NODES_HEADER],
};

/// Returns the lines of a patch, one thread each.
pub(super) fn lines(degree: usize) -> usize {
    (2 * degree + 1).pow(2)
}

pub(super) fn shape(degree: usize) -> PatchShape {
    let blocks = match degree {
        ..5 => 4,
        5 | 6 => 2,
        _ => 1,
    };
    PatchShape { team: lines(degree), teams: (128 / lines(degree)).max(1), blocks }
}

/// Returns the shared memory of a team in bytes.
pub(super) fn bytes<T>(degree: usize) -> usize {
    2 * (2 * degree + 1).pow(3) * size_of::<T>()
}

/// Returns the program for patches on free sides (`is_mirrored`) or for all others.
pub(super) fn program<T: Scalar>(degree: usize, shape: PatchShape, is_mirrored: bool) -> Specialisation {
    let program = FUSED
        .of::<T>()
        .define("FEMTILE_DEGREE", degree)
        .define("FEMTILE_IS_MIRRORED", u8::from(is_mirrored))
        .header("tables.cuh", Modes::new(degree).dense_text());
    shape.define(program)
}
