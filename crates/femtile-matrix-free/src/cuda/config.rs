//! Settings of the operator on a GPU.

use super::tables;
use femtile_fem::geometry::CellRule;
use femtile_fem::geometry::MetricEvaluation;

/// Threads of a warp, and warp schedulers of a multiprocessor.
const WARP: usize = 32;
const SCHEDULERS: usize = 4;

/// Launch shape: the distribution of cells to threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// Cells that a block computes at the same time.
    pub cells: usize,
    /// Blocks per multiprocessor to compile for, which limits their registers.
    pub blocks: usize,
}

/// Most bytes of shared memory of a block of several components, which fit GPUs of compute capability 8 and 9.
const MOST_SHARED: usize = 96 << 10;
/// Registers of a warp scheduler for each of its lanes.
const REGISTERS: usize = 512;

/// Settings of [`super::CudaMatrixFree`]; by default all are chosen, and there is one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CudaMatrixFreeConfig {
    /// Components of the field.
    pub components: usize,
    /// Metric evaluation: constant, trilinear or stored; by default the cheapest that fits.
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
    /// Chooses the shape for elements of a degree with a rule and the components computed at the same time; `has_more` marks
    /// operators with two terms, irregular cells or an anisotropic σ.
    pub(super) fn of(
        (degree, together): (usize, usize),
        rule: CellRule,
        metric: MetricEvaluation,
        has_more: bool,
    ) -> Self {
        let n = rule.n_points(degree);
        let cells = match n {
            ..=2 => 32,
            3 | 4 => 8,
            5 => 5,
            6 => 3,
            7 | 8 => 2,
            _ => 1,
        };
        let of_lines = warps(n, tables::is_collocated(degree, rule), metric);
        let most = if has_more { of_lines.min(3) } else { of_lines };
        let most = if together == 1 { most } else { most.min(warps_together(n, together)) };
        let shape = Self { cells, blocks: 1 };
        Self { blocks: (SCHEDULERS * most * WARP / shape.threads(n)).max(1), ..shape }
    }

    /// Returns the threads of a block.
    pub(super) fn threads(self, n_points: usize) -> usize {
        (self.cells * n_points * n_points).next_multiple_of(32)
    }
}

/// Returns the number of components that are computed at the same time, a divisor of all: their tensors fit registers and shared
/// memory.
pub(super) fn together(n_points: usize, components: usize) -> usize {
    let cell = 3 * n_points * n_points * (n_points | 1) * size_of::<f64>();
    let most = if n_points <= 6 { 4 } else { 3.min(MOST_SHARED / cell).max(1) };
    (1..=most).rev().find(|&together| components.is_multiple_of(together)).unwrap_or(1)
}

/// Returns the warps per scheduler that leave a thread the registers of two columns of `n` points for each component.
fn warps_together(n: usize, together: usize) -> usize {
    let registers = 4 * n * together + 60;
    (REGISTERS / registers).max(2)
}

/// Returns the warps per scheduler for `n` points along an axis: as many as leave each thread the registers for its
/// lines (255, 168, 128, 96, 80 and 72 for 2 to 7 warps), measured on an H200.
fn warps(n: usize, is_collocated: bool, metric: MetricEvaluation) -> usize {
    match (metric, is_collocated, n) {
        (MetricEvaluation::Trilinear, _, ..=3) => 4,
        (MetricEvaluation::Trilinear, true, 4 | 8) => 4,
        (MetricEvaluation::Trilinear, true, 5..=7) | (MetricEvaluation::Trilinear, false, 4) => 3,
        (MetricEvaluation::Trilinear, ..) => 2,
        (MetricEvaluation::StoredSingle, _, 6) => 5,
        (_, _, ..=3) => 6,
        (_, true, 4) => 7,
        (_, _, 4 | 5) => 5,
        (_, _, 6 | 7) | (MetricEvaluation::Stored | MetricEvaluation::StoredSingle, true, 8) => 4,
        (_, _, 8) | (_, true, 9 | 11) => 3,
        _ => 2,
    }
}
