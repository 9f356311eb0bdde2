use femtile_device::cuda::{Header, Program, RECIPROCAL_HEADER, STRIDED_HEADER, Specialisation};
use femtile_device::{Scalar, parallel};
use femtile_element::quadrature::gauss_legendre;
use femtile_element::tensor::Lagrange;

use super::super::HIGHEST_DEGREE;
use super::super::cells::CELLS_HEADER;
use super::super::constants::text;
use super::super::shape::PatchShape;
use crate::grid::place;
use crate::mapped::{CellGeometry, ShapeKind};

static OPERATOR: Program = Program {
    name: "box_mapped",
    source: include_str!("operator.cu"),
    headers: &[STRIDED_HEADER, CELLS_HEADER, GAUSS_HEADER, RECIPROCAL_HEADER],
};

/// The header `gauss.cuh`: evaluation at Gauss points along lines.
pub(in super::super) const GAUSS_HEADER: Header =
    Header { name: "gauss.cuh", text: include_str!("gauss.cuh") };

/// Cells that a thread converts at least.
const CELLS: usize = 1 << 10;

/// Returns the data of all cells, `[n_z][n_y][n_x][len]`; those of rectangles in the plane without the last two.
pub(in super::super) fn numbers<T: Scalar>(
    geometry: &CellGeometry,
    dimension: usize,
    kind: ShapeKind,
) -> Vec<T> {
    let cells = geometry.cells();
    let of_cell = |number: usize| {
        let cell = place(cells, number);
        kind.numbers(&geometry.map(cell), geometry.coefficient(cell))
    };
    match (kind, dimension) {
        (ShapeKind::Rectangular, 2) => of_cells::<T, 2>(cells, of_cell),
        (ShapeKind::Rectangular, _) => of_cells::<T, 4>(cells, of_cell),
        (ShapeKind::Bilinear, _) => of_cells::<T, 9>(cells, of_cell),
        (ShapeKind::Trilinear, _) => of_cells::<T, 25>(cells, of_cell),
    }
}

/// Returns the first N numbers of each cell, one cell after the other.
fn of_cells<T: Scalar, const N: usize>(
    cells: [usize; 3],
    of_cell: impl Fn(usize) -> Vec<f64> + Sync,
) -> Vec<T> {
    let numbers = |cell: usize| {
        let numbers = of_cell(cell);
        std::array::from_fn::<T, N, _>(|i| T::from_f64(numbers[i]))
    };
    parallel::map(cells.iter().product(), CELLS, numbers).into_flattened()
}

/// Blocks limit registers if no register spills then: compilers for sm_90 use up to twice as many as for
/// sm_80.
pub(in super::super) fn shape<T: Scalar>(degree: usize) -> PatchShape {
    let team = (degree + 1) * (degree + 1);
    let blocks = match (degree, size_of::<T>()) {
        (..3, _) | (_, 4) => 4,
        (3, _) => 3,
        _ => 1,
    };
    PatchShape { team, teams: (128 / team).max(1), blocks }
}

/// Returns the shared memory of a team in bytes.
pub(in super::super) fn bytes<T>(degree: usize) -> usize {
    let n = degree + 1;
    (3 * n + 2) * n * (n | 1) * size_of::<T>()
}

/// Returns the header `tables.cuh` of evaluation at Gauss points.
pub(in super::super) fn gauss_tables(degree: usize) -> String {
    let (points, weights) = gauss_legendre(degree + 1);
    text(&[
        ("VALUES", Lagrange::gauss_lobatto(degree).values(&points).entries),
        ("SLOPES", Lagrange::new(points.clone()).slopes(&points).entries),
        ("POINTS", points.iter().map(|x| 2.0 * x - 1.0).collect()),
        ("WEIGHTS", weights),
    ])
}

/// Returns the program of the operator.
pub(in super::super) fn program<T: Scalar>(degree: usize) -> Specialisation {
    let program = OPERATOR.of::<T>().define("FEMTILE_DEGREE", degree);
    shape::<T>(degree).define(program.header("tables.cuh", gauss_tables(degree)))
}

pub(in super::super) fn specialisations() -> Vec<Specialisation> {
    (1..=HIGHEST_DEGREE).flat_map(|degree| [program::<f64>(degree), program::<f32>(degree)]).collect()
}
