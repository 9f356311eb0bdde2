//! What may be chosen of the operator on a GPU.

use super::tables;
use femtile_fem::geometry::CellRule;
use femtile_fem::geometry::MetricEvaluation;

/// Threads of a warp, and parts of a multiprocessor that hold warps each.
const WARP: usize = 32;
const SCHEDULERS: usize = 4;

/// How cells are dealt out to the threads of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LaunchShape {
    /// Cells that a block has side by side.
    pub cells: usize,
    /// Blocks that a multiprocessor is to have at once, which limits their registers.
    pub blocks: usize,
}

/// Settings of [`super::CudaMatrixFree`]; by default all is chosen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CudaMatrixFreeConfig {
    /// How metrics are come by: constant, trilinear or stored; by default the cheapest way there is.
    pub metric: Option<MetricEvaluation>,
    /// How cells are dealt out.
    pub shape: Option<LaunchShape>,
    /// Cells that a block takes one batch after the other; no more than it has side by side make every cell share for itself.
    pub cells_per_group: Option<usize>,
}

impl LaunchShape {
    /// For elements of a degree with a rule; `has_more` says that a cell has more than slopes of regular unknowns.
    pub(super) fn of(degree: usize, rule: CellRule, metric: MetricEvaluation, has_more: bool) -> Self {
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
        let shape = Self { cells, blocks: 1 };
        Self { blocks: (SCHEDULERS * most * WARP / shape.threads(n)).max(1), ..shape }
    }

    /// Threads of a block.
    pub(super) fn threads(self, n_points: usize) -> usize {
        (self.cells * n_points * n_points).next_multiple_of(32)
    }
}

/// Warps that one scheduler is to hold, for so many points along an axis: as many as leave each thread the registers for
/// its lines (255, 168, 128, 96, 80 and 72 for 2 to 7 warps), as the compiler and an H200 have it.
fn warps(n: usize, is_collocated: bool, metric: MetricEvaluation) -> usize {
    match (metric, is_collocated, n) {
        (MetricEvaluation::Trilinear, _, ..=3) => 4,
        (MetricEvaluation::Trilinear, true, 4 | 8) => 4,
        (MetricEvaluation::Trilinear, true, 5..=7) | (MetricEvaluation::Trilinear, false, 4) => 3,
        (MetricEvaluation::Trilinear, ..) => 2,
        (_, _, ..=3) => 6,
        (_, true, 4) => 7,
        (_, _, 4 | 5) => 5,
        (_, _, 6 | 7) | (MetricEvaluation::Stored, true, 8) => 4,
        (_, _, 8) | (_, true, 9 | 11) => 3,
        _ => 2,
    }
}
