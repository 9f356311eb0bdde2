use femtile_device::Scalar;
use femtile_device::cuda::{Launch, Program, RECIPROCAL_HEADER, STRIDED_HEADER, Specialisation};

use super::super::HIGHEST_DEGREE;
use super::super::cells::{CELLS_HEADER, Cells};
use super::super::mapped::operator::{GAUSS_HEADER, gauss_tables};
use super::super::operator::{SYMMETRIC_HEADER, symmetric_tables};
use super::TILE_HEADER;
use crate::grid::BoxGrid;

static OPERATOR: Program = Program {
    name: "plane_operator",
    source: include_str!("operator.cu"),
    headers: &[STRIDED_HEADER, CELLS_HEADER, SYMMETRIC_HEADER, TILE_HEADER],
};

static MAPPED: Program = Program {
    name: "plane_mapped",
    source: include_str!("mapped.cu"),
    headers: &[STRIDED_HEADER, CELLS_HEADER, GAUSS_HEADER, RECIPROCAL_HEADER, TILE_HEADER],
};

const THREADS: u32 = 256;

/// The kind of cells.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PlaneKind {
    /// Rectangles with coefficient one.
    Plain,
    /// Rectangles with a coefficient each.
    ByCell,
    Mapped,
}

impl PlaneKind {
    /// Returns the name of the kernel.
    pub fn name(self) -> &'static str {
        if self == Self::Mapped { "plane_mapped_residual" } else { "plane_residual" }
    }

    /// Returns the program of the operator.
    pub fn program<T: Scalar>(self, degree: usize) -> Specialisation {
        let [x, y] = tile(degree);
        let program = match self {
            Self::Mapped => MAPPED.of::<T>().header("tables.cuh", gauss_tables(degree)),
            _ => OPERATOR
                .of::<T>()
                .define("FEMTILE_BY_CELL", u8::from(self == Self::ByCell))
                .header("tables.cuh", symmetric_tables(degree)),
        };
        program
            .define("FEMTILE_DEGREE", degree)
            .define("FEMTILE_TILE_X", x)
            .define("FEMTILE_TILE_Y", y)
            .define("FEMTILE_THREADS", THREADS)
    }
}

/// Returns the cells of a tile along each axis: with those before it about as many lines as a block has threads.
fn tile(degree: usize) -> [usize; 2] {
    match degree {
        1 => [31, 7],
        2 => [15, 7],
        3 => [9, 5],
        4 => [7, 5],
        5 => [7, 4],
        6 => [5, 5],
        7 => [5, 4],
        _ => [4, 4],
    }
}

/// Returns the tiles of a grid, and the launch with a block for each.
pub fn tiles<T>(grid: &BoxGrid) -> (Cells, Launch) {
    let (degree, [x, y]) = (grid.degree(), tile(grid.degree()));
    let nodes = ((degree * (x + 1) + 1) | 1) * (degree * (y + 1) + 1);
    let of_cell = (2 * (degree + 1) * ((degree + 1) | 1)) | 1;
    let bytes = (nodes + (x + 1) * (y + 1) * of_cell) * size_of::<T>();
    let cells = Cells::tiles(grid, [x, y, 1]);
    let launch = Launch::line(cells.n, THREADS).shared(bytes);
    (cells, launch)
}

pub(super) fn specialisations() -> Vec<Specialisation> {
    let of_degree = |degree| {
        [PlaneKind::Plain, PlaneKind::ByCell, PlaneKind::Mapped]
            .map(|kind| [kind.program::<f64>(degree), kind.program::<f32>(degree)])
            .concat()
    };
    (1..=HIGHEST_DEGREE).flat_map(of_degree).collect()
}
