//! Settings of the operator on a GPU.

use femtile_space::geometry::MetricEvaluation;

use super::program::Variant;
use super::tables;

/// Threads of a warp, and warp schedulers of a multiprocessor.
const WARP: usize = 32;
const SCHEDULERS: usize = 4;

/// Cells of an operator, and components of its field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CellField {
    /// Axes of the cells: 2 or 3.
    pub dimension: usize,
    /// Degree of the polynomials along each axis.
    pub degree: usize,
    /// Components of the field.
    pub components: usize,
}

/// Launch shape: the distribution of cells to threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// Cells that a block computes at the same time.
    pub cells: usize,
    /// Blocks per multiprocessor to compile for, which limits their registers.
    pub blocks: usize,
}

/// Shared memory of a multiprocessor of compute capability 9, and the part that every block uses besides its
/// own.
const SHARED: usize = 228 << 10;
const SHARED_PER_BLOCK: usize = 1 << 10;
/// Most bytes of a cell with several components, which fit a block on GPUs of compute capability 8, and of a block with several
/// cells.
const MOST_OF_CELL: usize = 96 << 10;
const MOST_OF_BLOCK: usize = SHARED / 3;

/// Settings of [`super::CudaMatrixFree`]; by default all are chosen, and there is one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudaMatrixFreeConfig {
    /// Components of the field.
    pub components: usize,
    /// Metric evaluation; by default the cheapest that fits.
    pub metric: Option<MetricEvaluation>,
    /// The launch shape.
    pub shape: Option<LaunchShape>,
    /// Cells per group, which a block visits batch by batch; with a single batch, every cell stores its shared values
    /// separately.
    pub cells_per_group: Option<usize>,
}

impl Default for CudaMatrixFreeConfig {
    fn default() -> Self {
        Self { components: 1, metric: None, shape: None, cells_per_group: None }
    }
}

impl LaunchShape {
    /// Chooses the shape for an operator.
    pub(super) fn of(variant: &Variant) -> Self {
        let &Variant { degree, rule, metric, together, .. } = variant;
        let n = rule.n_points(degree);
        if variant.dimension == 2 {
            return Self::of_quadrilaterals(variant);
        }
        if variant.tangent.is_some() {
            return Self::of_tangent(variant);
        }
        let cells = match n {
            ..=2 => 32,
            3 | 4 => 8,
            5 => 5,
            6 => 3,
            7 | 8 => 2,
            _ => 1,
        };
        let of_lines = warps(n, tables::is_collocated(degree, rule), metric);
        let most = if variant.has_more() { of_lines.min(3) } else { of_lines };
        if together == 1 {
            return Self { cells, blocks: 1 }.with_warps(n * n, most);
        }
        let of_cell = variant.shared_bytes_of_cell::<f64>();
        let cells = cells.min(MOST_OF_BLOCK / of_cell).max(1);
        let shape = Self { cells, blocks: 1 };
        // Seven points beside the nodes spill with four warps.
        let most = if n == 7 { most.min(3) } else { most };
        shape.with_shared(n * n, most, of_cell)
    }

    /// Bytes of shared memory that a cell of a form may take: those of a block of compute capability 8.0 and 9.0.
    pub(super) const MOST_OF_TANGENT: usize = 160 << 10;

    /// Chooses the shape for the tangent of a form on hexahedra. A point takes the registers of all slots twice, and of the geometry.
    fn of_tangent(variant: &Variant) -> Self {
        let (n, of_cell) = (variant.n_points(), variant.shared_bytes_of_cell::<f64>());
        let cells = match n {
            ..=2 => 16,
            3 | 4 => 8,
            5 => 5,
            6 => 3,
            7 | 8 => 2,
            _ => 1,
        };
        let most = if variant.components == 1 { 4 } else { 3 };
        let cells = cells.min(MOST_OF_BLOCK / of_cell).max(1);
        Self { cells, blocks: 1 }.with_shared(n * n, if n > 7 { 2 } else { most }, of_cell)
    }

    /// Chooses the shape on quadrilaterals: two warps a block, of as many cells as fit.
    fn of_quadrilaterals(variant: &Variant) -> Self {
        let (n, of_cell) = (variant.n_points(), variant.shared_bytes_of_cell::<f64>());
        let cells = (2 * WARP / n).min(MOST_OF_BLOCK / of_cell).max(1);
        let of_lines = warps_of_quadrilaterals(n, variant);
        Self { cells, blocks: 1 }.with_shared(n, of_lines, of_cell)
    }

    /// Returns the shape with at most this number of warps per scheduler, and no more than have shared memory.
    fn with_shared(self, of_cell: usize, warps: usize, bytes_of_cell: usize) -> Self {
        let resident = SHARED / (self.cells * bytes_of_cell + SHARED_PER_BLOCK);
        let most = resident * self.threads(of_cell) / (SCHEDULERS * WARP);
        self.with_warps(of_cell, warps.min(most).max(1))
    }

    /// Returns the shape with this number of threads per cell. The number of blocks per multiprocessor leaves
    /// each scheduler this number of warps.
    fn with_warps(self, of_cell: usize, warps: usize) -> Self {
        Self { blocks: (SCHEDULERS * warps * WARP / self.threads(of_cell)).max(1), ..self }
    }

    /// Returns the threads of a block with this number of threads per cell.
    pub(super) fn threads(self, of_cell: usize) -> usize {
        (self.cells * of_cell).next_multiple_of(WARP)
    }
}

/// Returns the number of tensors of a component in shared memory if several components are computed at the
/// same time, as `TENSORS` of the kernel.
pub(super) fn tensors(dimension: usize, has_stiffness: bool, has_mass: bool) -> usize {
    if has_stiffness { dimension + usize::from(has_mass) } else { 1 }
}

/// Returns the number of components that are computed at the same time, a divisor of all. One component of a
/// cell uses `of_one` bytes.
pub(super) fn together(n_points: usize, field: CellField, of_one: usize) -> usize {
    let CellField { dimension, components, .. } = field;
    let most = match (dimension, n_points) {
        (2, 12..) => 1,
        (2, 10 | 11) => 2,
        (2, _) | (_, ..=6) => 4,
        _ => 3,
    };
    let most = most.min(MOST_OF_CELL / of_one);
    (1..=most).rev().find(|&together| components.is_multiple_of(together)).unwrap_or(1)
}

/// Returns the warps per scheduler for `n` points along an axis. They leave each thread the registers for its
/// lines (255, 168, 128, 96, 80 and 72 for 2 to 7 warps), measured on an H200.
fn warps(n: usize, is_collocated: bool, metric: MetricEvaluation) -> usize {
    match (metric, is_collocated, n) {
        (MetricEvaluation::Computed, _, ..=3) => 4,
        (MetricEvaluation::Computed, true, 4 | 8) => 4,
        (MetricEvaluation::Computed, true, 5..=7) | (MetricEvaluation::Computed, false, 4) => 3,
        (MetricEvaluation::Computed, ..) => 2,
        (_, _, ..=3) => 6,
        (_, true, 4) => 7,
        (_, _, 4 | 5) => 5,
        (_, _, 6 | 7) | (MetricEvaluation::Stored, true, 8) => 4,
        (_, _, 8) | (_, true, 9 | 11) => 3,
        _ => 2,
    }
}

/// Returns the warps per scheduler on quadrilaterals that leave each thread the registers for its lines, on GPUs of compute
/// capability 8.0 and 9.0.
fn warps_of_quadrilaterals(n: usize, variant: &Variant) -> usize {
    let (is_bilinear, has_more) = (variant.metric == MetricEvaluation::Computed, variant.has_more());
    if variant.together > 1 {
        return match n * variant.together {
            ..=8 => 5,
            9..=15 => 4,
            _ if n <= 8 && variant.together <= 3 || n <= 6 => 3,
            _ => 2,
        };
    }
    let of_one = match (n, is_bilinear, has_more) {
        (..=5, false, false) => 8,
        (..=7, false, _) | (8, false, false) | (..=6, true, false) => 6,
        (..=6, ..) | (7 | 8, _, false) | (8 | 9, false, _) | (10, false, false) => 5,
        (..=10, ..) | (11, false, false) => 4,
        _ => 3,
    };
    // Several passes over a cell take registers of their own.
    if variant.components > 1 { of_one * 2 / 3 } else { of_one }
}
