use std::fmt;

use femtile_sparse::Format;

use crate::{AmgConfig, LevelShape};

/// The sizes of all levels, the finest first, and what their set-up has found.
#[derive(Debug, Clone)]
pub struct Hierarchy {
    pub(crate) config: AmgConfig,
    pub(crate) shapes: Vec<LevelShape>,
    pub(crate) formats: Vec<Format>,
    pub(crate) n_null: usize,
    pub(crate) is_stalled: bool,
}

impl Hierarchy {
    /// Returns the settings.
    pub fn config(&self) -> &AmgConfig {
        &self.config
    }

    /// Returns the dimension of the null space that coarser levels have found, to their precision; a single level finds it in
    /// the matrix itself.
    pub fn n_null(&self) -> usize {
        self.n_null
    }

    /// Returns whether coarsening ended early: no strength of connection makes the next level much smaller, and the coarsest
    /// one is too large to be solved.
    pub fn is_stalled(&self) -> bool {
        self.is_stalled
    }

    /// Returns the sizes of the levels, the finest first.
    pub fn shapes(&self) -> &[LevelShape] {
        &self.shapes
    }

    /// Returns the format of the matrix of each level that is smoothed, the finest first; on several ranks that of the owned
    /// columns.
    pub fn formats(&self) -> &[Format] {
        &self.formats
    }

    /// Returns the non-zeros of all levels over those of the first: the cost of a cycle relative to the matrix.
    pub fn operator_complexity(&self) -> f64 {
        operator_complexity(&self.shapes)
    }

    /// Returns the rows of all levels over those of the first.
    pub fn grid_complexity(&self) -> f64 {
        let all: usize = self.shapes.iter().map(|shape| shape.n_rows).sum();
        all as f64 / self.shapes.first().map_or(1, |shape| shape.n_rows.max(1)) as f64
    }
}

/// Returns the non-zeros of all levels over those of the first.
pub(crate) fn operator_complexity(shapes: &[LevelShape]) -> f64 {
    let all: usize = shapes.iter().map(|shape| shape.n_nonzeros).sum();
    all as f64 / shapes.first().map_or(1, |shape| shape.n_nonzeros.max(1)) as f64
}

/// The table of levels.
impl fmt::Display for Hierarchy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_patches = self.shapes.iter().any(|shape| shape.n_patches > 0);
        let patches = if has_patches { "     patches  rows each" } else { "" };
        writeln!(f, "level        rows    non-zeros  a row  aggregates  rows each{patches}")?;
        for (number, shape) in self.shapes.iter().enumerate() {
            let LevelShape { n_rows, n_nonzeros, n_aggregates, n_patches, .. } = *shape;
            let per_row = n_nonzeros as f64 / n_rows.max(1) as f64;
            write!(f, "{number:>5}  {n_rows:>10}  {n_nonzeros:>11}  {per_row:>5.1}")?;
            for n in [n_aggregates, n_patches] {
                if n > 0 {
                    write!(f, "  {n:>10}  {:>9.1}", n_rows as f64 / n as f64)?;
                }
            }
            writeln!(f)?;
        }
        write!(
            f,
            "operator complexity {:.2}, grid complexity {:.2}",
            self.operator_complexity(),
            self.grid_complexity()
        )
    }
}
