//! What may be chosen of the operator on a GPU.

use super::tables;
use crate::matrix_free::quadrature::CellRule;

/// Registers of a multiprocessor.
const REGISTERS: usize = 65_536;

/// How an operator without a matrix comes by the metric of its cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Geometry {
    /// Seven numbers a cell, where it is the same at all points of every cell.
    Constant,
    /// From the eight corners of a cell at every point, where cells are trilinear and coefficients are given by cell.
    Trilinear,
    /// Stored at all points.
    Stored,
}

/// How cells are dealt out to the threads of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Cells that a block has side by side.
    pub cells: usize,
    /// Blocks that a multiprocessor is to have at once, which limits their registers.
    pub blocks: usize,
}

/// Settings of [`super::CudaMatrixFree`]; by default all is chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CudaMatrixFreeConfig {
    /// How metrics are come by; by default the cheapest way there is.
    pub geometry: Option<Geometry>,
    /// How cells are dealt out.
    pub shape: Option<Shape>,
    /// Cells that a block takes one batch after the other.
    pub cells_per_group: Option<usize>,
}

impl Shape {
    /// For elements of a degree with a rule: as measured on an H200, where more blocks help until registers spill.
    pub(super) fn of(degree: usize, rule: CellRule, geometry: Geometry) -> Self {
        let n = rule.n_points(degree);
        let cells = match n {
            ..=2 => 32,
            3 | 4 => 8,
            5 => 5,
            6 => 4,
            7 | 8 => 2,
            _ => 1,
        };
        let interpolation = if tables::is_collocated(degree, rule) { 0 } else { 4 * n };
        let of_corners = if geometry == Geometry::Trilinear { 60 } else { 0 };
        let registers = 28 + 12 * n + interpolation + of_corners;
        let shape = Self { cells, blocks: 1 };
        Self { blocks: (REGISTERS / (shape.threads(n) * registers)).clamp(1, 16), ..shape }
    }

    /// Threads of a block.
    pub(super) fn threads(self, n_points: usize) -> usize {
        (self.cells * n_points * n_points).next_multiple_of(32)
    }
}
