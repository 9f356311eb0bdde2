use femtile_device::Scalar;
use femtile_device::cuda::{Header, Program, RECIPROCAL_HEADER, STRIDED_HEADER, Specialisation};

use super::super::HIGHEST_DEGREE;
use super::super::smoother::tables::Modes;
use super::super::smoother::{COLOUR_HEADER, Compiled, MODES_HEADER, NODES_HEADER, WEIGHTS_HEADER};
use super::teams_of;

static CORRECTIONS: Program =
    Program { name: NAME, source: include_str!("corrections.cu"), headers: &HEADERS };

/// The name of the kernel.
pub const NAME: &str = "plane_corrections";
const HEADERS: [Header; 6] =
    [RECIPROCAL_HEADER, STRIDED_HEADER, MODES_HEADER, COLOUR_HEADER, NODES_HEADER, WEIGHTS_HEADER];

/// Returns the program of local solves with factors for each patch, for boxes with free sides or without, and its launch
/// shape.
pub fn compiled<T: Scalar>(degree: usize, is_mirrored: bool) -> Compiled {
    let n = 2 * degree - 1;
    let shape = teams_of(n);
    let program = CORRECTIONS
        .of::<T>()
        .define("FEMTILE_DEGREE", degree)
        .define("FEMTILE_IS_MIRRORED", u8::from(is_mirrored))
        .header("tables.cuh", Modes::new(degree).text());
    Compiled { program: shape.define(program), shape, bytes: n * n * size_of::<T>() }
}

pub(super) fn specialisations() -> Vec<Specialisation> {
    let of_degree = |degree| {
        let of_sides = |is_mirrored| {
            [compiled::<f64>(degree, is_mirrored).program, compiled::<f32>(degree, is_mirrored).program]
        };
        [false, true].map(of_sides).concat()
    };
    (1..=HIGHEST_DEGREE).flat_map(of_degree).collect()
}
