use femtile_device::Scalar;
use femtile_device::cuda::{Program, RECIPROCAL_HEADER, STRIDED_HEADER};

use super::super::shape::PatchShape;
use super::skeleton::{self, paddings};
use super::{COLOUR_HEADER, Compiled, MODES_HEADER, NODES_HEADER, WEIGHTS_HEADER, tables::Modes};

static ADDITIVE: Program = Program {
    name: NAME,
    source: include_str!("additive.cu"),
    headers: &[RECIPROCAL_HEADER, STRIDED_HEADER, MODES_HEADER, COLOUR_HEADER, NODES_HEADER, WEIGHTS_HEADER],
};

/// The name of the kernel.
pub const NAME: &str = "vertex_patch_additive";

fn shape<T: Scalar>(degree: usize) -> PatchShape {
    let shape = skeleton::shape::<T>(degree, false);
    // Two blocks leave too few registers.
    if (degree, size_of::<T>()) == (8, 8) { PatchShape { blocks: 1, ..shape } } else { shape }
}

/// Returns the shared memory of a team in bytes.
fn bytes<T: Scalar>(degree: usize) -> usize {
    let n = 2 * degree - 1;
    let (row, layer) = paddings::<T>(n);
    ((n - 1) * (row + layer) + n) * size_of::<T>()
}

/// Returns the program of local solves with factors for each patch, for patches on free sides or for all others, and its
/// launch shape.
pub fn compiled<T: Scalar>(degree: usize, is_mirrored: bool) -> Compiled {
    let (shape, (row, layer)) = (shape::<T>(degree), paddings::<T>(2 * degree - 1));
    let program = ADDITIVE
        .of::<T>()
        .define("FEMTILE_DEGREE", degree)
        .define("FEMTILE_IS_MIRRORED", u8::from(is_mirrored))
        .define("FEMTILE_ROW", row)
        .define("FEMTILE_LAYER", layer)
        .header("tables.cuh", Modes::new(degree).text());
    Compiled { program: shape.define(program), shape, bytes: bytes::<T>(degree) }
}
