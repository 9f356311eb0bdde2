//! Which rows share a slice, from their lengths alone.

use femtile_device::parallel;
use femtile_linalg::LinalgError;
use femtile_linalg::vector::sum::{BLOCK, n_blocks};
use rayon::prelude::*;

use super::EllWarpConfig;

/// Slices of rows: for each, its first row in the order of the places and the lanes of a row.
///
/// Row `p` of the order is at place `p`; entry `k` of the row at place `p` of a slice that begins at place `f` and
/// gives `t` lanes to a row lies in lane `(p − f) t + k mod t`, in column `k / t` of the slice, where lanes are stored
/// in the order of [`stored_lane`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Slices {
    pub lanes: usize,
    /// Where each slice begins, in columns of `lanes` entries; the last number is the end.
    pub starts: Vec<u32>,
    /// First place of each slice and, as the last number, the number of rows; empty where slice `s` begins at
    /// place `s · lanes`.
    pub firsts: Vec<u32>,
    /// Logarithm of the lanes of a row, for each slice; empty where it is 0 for all.
    pub folds: Vec<u32>,
    /// The row at each place; none where it is the place itself.
    pub rows: Option<Vec<u32>>,
    /// Slices of one row that is too long for a warp: a GPU gives each to a block of threads.
    pub longs: Vec<u32>,
    /// The first slice of each block of [`BLOCK`] rows and the end; none where rows of a block lie in other
    /// blocks' slices.
    pub of_blocks: Option<Vec<u32>>,
}

impl Slices {
    /// The layout of rows of these lengths.
    ///
    /// # Cost
    /// O(n) and the sort of each window.
    /// # Errors
    /// [`LinalgError::Setting`] when there are more than 2³² columns of slices.
    pub fn new(lengths: &[u32], config: &EllWarpConfig) -> Result<Self, LinalgError> {
        let n = lengths.len();
        let rows = sorted_rows(lengths, config.window);
        let length = |place: usize| match &rows {
            Some(rows) => lengths[rows[place] as usize] as usize,
            None => lengths[place] as usize,
        };
        let run = rows_of_run(n, config.window);
        let mut slices = Self::empty(config.lanes);
        let mut end = 0usize;
        let mut of_blocks = vec![0];
        for first_of_run in (0..n).step_by(run) {
            let end_of_run = (first_of_run + run).min(n);
            let mut first = first_of_run;
            while first < end_of_run {
                let (fold, next) = match config.threshold {
                    None => (0, (first + config.lanes).min(end_of_run)),
                    Some(threshold) => folded(first..end_of_run, &length, config.lanes, threshold),
                };
                let longest = (first..next).map(length).max().unwrap_or(0);
                let width = longest.div_ceil(1 << fold);
                end += width;
                if 1 << fold == config.lanes && width > LONG {
                    slices.longs.push(slices.folds.len() as u32);
                }
                slices.push(first, fold, end)?;
                first = next;
            }
            if end_of_run.is_multiple_of(BLOCK) || end_of_run == n {
                of_blocks.push(slices.folds.len() as u32);
            }
        }
        slices.firsts.push(n as u32);
        slices.rows = rows;
        slices.of_blocks = blocks_are_whole(n, run).then_some(of_blocks);
        if config.threshold.is_none() {
            slices.folds.clear();
            slices.firsts.clear();
        }
        Ok(slices)
    }

    fn empty(lanes: usize) -> Self {
        Self {
            lanes,
            starts: vec![0],
            firsts: Vec::new(),
            folds: Vec::new(),
            rows: None,
            longs: Vec::new(),
            of_blocks: None,
        }
    }

    fn push(&mut self, first: usize, fold: u32, end: usize) -> Result<(), LinalgError> {
        self.starts.push(narrow_columns(end as u64, self.lanes)?);
        self.firsts.push(first as u32);
        self.folds.push(fold);
        Ok(())
    }

    /// Number of slices.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Stored entries, padding included.
    pub fn n_stored(&self) -> usize {
        self.starts.last().map_or(0, |&end| end as usize) * self.lanes
    }

    /// The places of a slice.
    pub fn places(&self, slice: usize, n_rows: usize) -> std::ops::Range<usize> {
        if self.firsts.is_empty() {
            let first = slice * self.lanes;
            first..(first + self.lanes).min(n_rows)
        } else {
            self.firsts[slice] as usize..self.firsts[slice + 1] as usize
        }
    }

    /// Lanes of a row in a slice.
    pub fn lanes_of_row(&self, slice: usize) -> usize {
        self.folds.get(slice).map_or(1, |&fold| 1 << fold)
    }

    /// The row at a place.
    pub fn row(&self, place: usize) -> usize {
        self.rows.as_ref().map_or(place, |rows| rows[place] as usize)
    }

    /// The stored entry of a lane in a column of a slice.
    pub fn at(&self, column: usize, lane: usize) -> usize {
        column * self.lanes + stored_lane(lane, self.lanes)
    }

    /// The columns of a slice, among those of all slices.
    pub fn columns(&self, slice: usize) -> std::ops::Range<usize> {
        self.starts[slice] as usize..self.starts[slice + 1] as usize
    }
}

/// Where a lane is stored in a column of a slice: more lanes than a warp has are stored so that the lanes `i`,
/// `i + 32`, … are neighbours, which one thread loads at once while a warp still reads x in the order of the rows.
#[inline(always)]
pub(crate) const fn stored_lane(lane: usize, lanes: usize) -> usize {
    if lanes <= WARP { lane } else { lane % WARP * (lanes / WARP) + lane / WARP }
}

/// Columns of a slice of one row from which on a warp alone takes longer than all the others together: it has only a
/// few of them under way at once.
pub(crate) const LONG: usize = 32;

/// Threads of a warp.
pub(crate) const WARP: usize = 32;

/// The number of columns of all slices, in 32 bits.
pub(super) fn narrow_columns(n: u64, lanes: usize) -> Result<u32, LinalgError> {
    u32::try_from(n).map_err(|_| LinalgError::Setting {
        field: "window",
        message: format!("slices of {lanes} lanes have 2³² columns or more: sort more rows"),
    })
}

/// Rows that are cut into slices by themselves.
fn rows_of_run(n_rows: usize, window: usize) -> usize {
    if window == 1 { BLOCK } else { window.min(n_rows.max(1)) }
}

/// Returns whether the rows of each block of [`BLOCK`] lie in slices of their own.
fn blocks_are_whole(n_rows: usize, run: usize) -> bool {
    n_rows <= BLOCK || BLOCK.is_multiple_of(run)
}

/// [`Slices::of_blocks`] where each lane has a row.
pub(super) fn slices_of_blocks(n_rows: usize, config: &EllWarpConfig) -> Option<Vec<u32>> {
    let end = |block: usize| (block * BLOCK).min(n_rows).div_ceil(config.lanes) as u32;
    blocks_are_whole(n_rows, rows_of_run(n_rows, config.window))
        .then(|| (0..=n_blocks(n_rows)).map(end).collect())
}

/// Rows by descending length within windows, equal ones in their order; none where the order stays.
fn sorted_rows(lengths: &[u32], window: usize) -> Option<Vec<u32>> {
    if window == 1 {
        return None;
    }
    let mut rows: Vec<u32> = (0..lengths.len() as u32).collect();
    let by_length = |&row: &u32| std::cmp::Reverse(lengths[row as usize]);
    if window >= rows.len() {
        rows.par_sort_by_key(by_length);
    } else {
        parallel::for_chunks_mut(&mut rows, window, |_, rows| rows.sort_by_key(by_length));
    }
    Some(rows)
}

/// Lanes of a row: it is halved until a part has at most `threshold` entries or it fills the slice.
pub(crate) fn lanes_of_length(length: usize, threshold: usize, lanes: usize) -> usize {
    length.div_ceil(threshold).max(1).next_power_of_two().min(lanes)
}

/// Returns the logarithm of the lanes of the first of some places, and the end of its slice.
fn folded(
    places: std::ops::Range<usize>,
    length: &impl Fn(usize) -> usize,
    lanes: usize,
    threshold: usize,
) -> (u32, usize) {
    let fold = |length: usize| lanes_of_length(length, threshold, lanes).ilog2();
    let first_fold = fold(length(places.start));
    let mut end = (places.start + (lanes >> first_fold)).min(places.end);
    // Rows are not always sorted: a longer one begins a slice of its own.
    if let Some(longer) = (places.start + 1..end).find(|&place| fold(length(place)) > first_fold) {
        end = longer;
    }
    (first_fold, end)
}
