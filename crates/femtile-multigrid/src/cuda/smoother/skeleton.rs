use femtile_device::Scalar;
use femtile_device::cuda::{Program, RECIPROCAL_HEADER, STRIDED_HEADER, Specialisation};

use super::super::shape::PatchShape;
use super::PatchKernel;
use super::{COLOUR_HEADER, MODES_HEADER, tables::Modes};

static SKELETON: Program = Program {
    name: "vertex_patch_skeleton",
    source: include_str!("skeleton.cu"),
    headers: &[RECIPROCAL_HEADER, STRIDED_HEADER, MODES_HEADER, COLOUR_HEADER],
};

/// Returns the lines of a patch, one thread each: of the inner nodes, and of three planes.
pub(super) fn lines(degree: usize) -> usize {
    let n = 2 * degree - 1;
    (n * n).max(3 * n)
}

/// Returns the launch shape; `is_skeleton` says that nodes inside a cell are written once.
pub(super) fn shape<T: Scalar>(degree: usize, is_skeleton: bool) -> PatchShape {
    let (team, teams, blocks) = match (degree, size_of::<T>()) {
        (1, _) => (8, 16, 4),
        (2, _) => (16, 8, 4),
        (3, _) => (25, 5, 5),
        (4, _) => (56, 4, 3),
        (5, _) => (81, 3, 2),
        (6, _) => (121, 1, 4),
        (7, 8) => (169, 1, if is_skeleton { 3 } else { 2 }),
        (7, _) => (169, 1, 4),
        _ => (lines(degree), 1, 2),
    };
    PatchShape { team, teams, blocks }
}

/// Returns the shared memory of a team in bytes.
pub(super) fn bytes<T: Scalar>(degree: usize) -> usize {
    let (n, m) = (2 * degree - 1, 2 * degree + 1);
    let (row, layer) = paddings::<T>(n);
    ((n - 1) * (row + layer) + n + (6 * m + 2) * n + 6 * n * n) * size_of::<T>()
}

pub(super) fn program<T: Scalar>(degree: usize, kernel: PatchKernel, shape: PatchShape) -> Specialisation {
    let (row, layer) = paddings::<T>(2 * degree - 1);
    let program = SKELETON
        .of::<T>()
        .define("FEMTILE_DEGREE", degree)
        .define("FEMTILE_WHOLE", u8::from(kernel == PatchKernel::Whole))
        .define("FEMTILE_ROW", row)
        .define("FEMTILE_LAYER", layer)
        .header("tables.cuh", Modes::new(degree).text());
    shape.define(program)
}

/// Returns the row and layer strides of a cube of n³ values with the fewest bank conflicts when n² threads read lines
/// along z, y, x, y and z.
pub(super) fn paddings<T>(n: usize) -> (usize, usize) {
    let mut best = (usize::MAX, (n, n * n));
    for row in n..n + 3 {
        for layer in row * n..row * n + 16 {
            let of_axis =
                |p: usize, q: usize| conflicts::<T>((0..n * n).map(|at| p * (at % n) + q * (at / n)));
            let cost = 2 * of_axis(1, row) + 3 * of_axis(1, layer) + 2 * of_axis(row, layer);
            if cost < best.0 {
                best = (cost, (row, layer));
            }
        }
    }
    best.1
}

/// Returns the number of bank conflicts of these accesses.
fn conflicts<T>(places: impl Iterator<Item = usize>) -> usize {
    let n_banks = 128 / size_of::<T>();
    let places: Vec<usize> = places.collect();
    let of_access = |places: &[usize]| {
        let mut counts = vec![0; n_banks];
        places.iter().for_each(|place| counts[place % n_banks] += 1);
        counts.into_iter().max().map_or(0, |most: usize| most - 1)
    };
    places.chunks(n_banks).map(of_access).sum()
}
