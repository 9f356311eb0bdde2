//! What may be chosen of the operator on a GPU.

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
    /// Whether stored metrics come through shared memory, asked for a batch of cells ahead.
    pub is_staged: bool,
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
    /// As measured on an H200, for a number of points along an axis.
    pub(super) fn of(n_points: usize, geometry: Geometry) -> Self {
        let cells = match n_points {
            ..=2 => 32,
            3 => 16,
            4 | 5 => 8,
            6 | 7 => 4,
            8 | 9 => 2,
            _ => 1,
        };
        let threads = (cells * n_points * n_points).next_multiple_of(32);
        // Registers for the lines that a thread holds.
        let registers = 40 + 8 * n_points;
        let blocks = (65_536 / (threads * registers)).clamp(1, 16);
        Self { cells, blocks, is_staged: geometry == Geometry::Stored && false }
    }

    /// Threads of a block.
    pub(super) fn threads(self, n_points: usize) -> usize {
        (self.cells * n_points * n_points).next_multiple_of(32)
    }
}
