use femtile_linalg::LinalgError;

use crate::rows::need_narrow;

/// The layout of rows in slices, and the encoding of columns.
///
/// The names of `[wong2015]`: K1 has `threshold: None`, K2 a threshold; r and rs are [`Numbering::Sorted`] and
/// [`Numbering::SortedColumns`]. SELL-C-σ has `lanes` C and `window` σ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EllWarpConfig {
    /// Lanes of a slice, as [`EllWarpKernels::LANES`] has them: 32 or 64 on a GPU, 4, 8, 16 or 32 on a CPU.
    ///
    /// [`EllWarpKernels::LANES`]: super::EllWarpKernels::LANES
    pub lanes: usize,
    /// Number of rows of a window within which rows are sorted by length, the longest first: 1 leaves them as they are,
    /// [`EllWarpConfig::ALL_ROWS`] sorts all of them; else a power of two that is a multiple of `lanes`.
    pub window: usize,
    /// The most entries of a row that one lane takes; longer rows are halved until they fit or fill a slice.
    pub threshold: Option<usize>,
    /// The numbering of the vectors.
    pub numbering: Numbering,
    /// Encoding of a column.
    pub indices: IndexKind,
    /// Reduction over the lanes of one row on a GPU.
    pub reduction: Reduction,
    /// Threads of a block on a GPU, a multiple of 32.
    pub block_threads: u32,
}

/// The numbering of the vectors that a matrix is applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Numbering {
    /// That of the matrix it was made from: results are written to where the rows were before they were sorted.
    Kept,
    /// That of the sorted rows (variant r): nothing is scattered; square matrices alone.
    Sorted,
    /// The same, with the entries of each row ordered by their new columns (variant rs).
    SortedColumns,
}

/// The encoding of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexKind {
    /// Its number, 32 bits.
    Full,
    /// Its distance from the entry of the lane before it, 16 bits; slices with larger distances keep 32 bits.
    Delta,
}

/// The reduction over the lanes of one row on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// By exchange between lanes.
    Shuffle,
    /// Through shared memory, as `[wong2015]` does.
    Shared,
}

impl EllWarpConfig {
    /// The window that sorts all rows.
    pub const ALL_ROWS: usize = usize::MAX;

    /// Slices of 32 lanes, rows as they are, numbers for columns.
    pub const fn new(lanes: usize) -> Self {
        Self {
            lanes,
            window: 1,
            threshold: None,
            numbering: Numbering::Kept,
            indices: IndexKind::Full,
            reduction: Reduction::Shuffle,
            block_threads: 128,
        }
    }

    /// Refuses what no layout follows from and lanes that a device has no product for, by the name of the
    /// setting.
    pub(super) fn check(&self, lanes: &[usize], n_rows: usize, n_cols: usize) -> Result<(), LinalgError> {
        need_narrow(n_rows, n_cols)?;
        let bad = |field, message: String| Err(LinalgError::Setting { field, message });
        if !lanes.contains(&self.lanes) {
            return bad("lanes", format!("{} lanes; choose one of {lanes:?} on this device", self.lanes));
        }
        let is_whole = self.window.is_power_of_two() && self.window >= self.lanes;
        if !(self.window == 1 || self.window == Self::ALL_ROWS || is_whole) {
            let message =
                format!("{} rows; choose 1, all rows, or a power of two from {} on", self.window, self.lanes);
            return bad("window", message);
        }
        if self.threshold == Some(0) {
            return bad("threshold", "0 entries of a row for a lane; choose 1 or more".into());
        }
        if !(self.block_threads.is_multiple_of(32) && (32..=1024).contains(&self.block_threads)) {
            let message = format!("{} threads; choose a multiple of 32 up to 1024", self.block_threads);
            return bad("block_threads", message);
        }
        if self.numbering != Numbering::Kept && n_rows != n_cols {
            let message =
                format!("vectors are renumbered for square matrices alone, not {n_rows} × {n_cols}");
            return bad("numbering", message);
        }
        if self.numbering == Numbering::Sorted && self.indices == IndexKind::Delta {
            let message = "distances need columns that ascend in a row: choose sorted columns".into();
            return bad("indices", message);
        }
        Ok(())
    }

    /// The short name: `K1`, `K2(8)`, with `r` or `rs`, the window and the kind of index.
    pub fn name(&self) -> String {
        let mut name = match self.threshold {
            None => "K1".to_owned(),
            Some(_) => "K2".to_owned(),
        };
        name += match self.numbering {
            Numbering::Kept => "",
            Numbering::Sorted => "r",
            Numbering::SortedColumns => "rs",
        };
        let mut details = Vec::new();
        if let Some(threshold) = self.threshold {
            details.push(format!("≤ {threshold}"));
        }
        details.push(match self.window {
            1 => "unsorted".to_owned(),
            Self::ALL_ROWS => "sorted".to_owned(),
            window => format!("sorted by {window}"),
        });
        details.push(format!("{} lanes", self.lanes));
        if self.indices == IndexKind::Delta {
            details.push("16-bit".to_owned());
        }
        if self.reduction == Reduction::Shared {
            details.push("shared".to_owned());
        }
        format!("{name} ({})", details.join(", "))
    }
}
