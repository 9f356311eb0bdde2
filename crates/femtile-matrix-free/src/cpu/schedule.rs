//! First and last access of the cell loop to ranges of the vectors.

use std::ops::Range;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::layout::Layout;
use super::partition::Partition;
use super::rows::Rows;
use femtile_device::parallel;
use femtile_space::TensorSpace;

/// Unknowns per range; a range has one row per unknown and component.
pub(super) const RANGE: usize = 64;

/// Lists of items by owner, one owner after another.
#[derive(Debug, Default)]
pub(super) struct Lists<T> {
    begins: Vec<usize>,
    entries: Vec<T>,
}

impl<T: Clone> Lists<T> {
    /// Creates the lists from pairs of an owner and an item; each owner's items keep their order.
    fn new(n_owners: usize, pairs: &[(usize, T)]) -> Self {
        let mut sorted: Vec<&(usize, T)> = pairs.iter().collect();
        sorted.sort_by_key(|(owner, _)| *owner);
        let begin = |owner: usize| sorted.partition_point(|(other, _)| *other < owner);
        Self {
            begins: (0..=n_owners).map(begin).collect(),
            entries: sorted.into_iter().map(|(_, thing)| thing.clone()).collect(),
        }
    }

    /// Returns the items of an owner.
    pub fn of(&self, owner: usize) -> &[T] {
        &self.entries[self.begins[owner]..self.begins[owner + 1]]
    }
}

/// First and last group that access each range, and the resulting schedule.
///
/// # Source
/// `[kronbichler2022]`, section 5.1: exact, for ranges of [`RANGE`] unknowns.
#[derive(Debug)]
pub(super) struct Schedule {
    /// The first and the last group that access each range.
    pub spans: Vec<[u32; 2]>,
    /// Rows of each tile, ascending: adjacent ranges accessed by one group only form one tile, other ranges are tiles
    /// of their own.
    pub tiles: Vec<Range<usize>>,
    /// Rows first accessed by each group, and by no other thread.
    pub begun: Lists<Range<usize>>,
    /// Tiles last accessed by each group, and by no other thread.
    pub completed: Lists<u32>,
    /// Rows accessed by groups of several threads, or needed by other ranks.
    pub shared_rows: Vec<Range<usize>>,
    /// Tiles that are complete only after all groups.
    pub shared_tiles: Vec<u32>,
}

impl Schedule {
    /// Creates the schedule; `is_late` are rows written after all groups; other ranks need those from
    /// `first_exported` on before cells are visited.
    pub fn new(
        space: &TensorSpace<'_>,
        rows: &Rows<'_>,
        layout: &Layout,
        parts: &Partition,
        (is_late, first_exported): (&[u32], usize),
    ) -> Self {
        let (n_rows, width) = (rows.n(), RANGE * layout.components);
        let spans = spans(space, rows, layout, width);
        let rows = |first: usize, end: usize| first * width..(end * width).min(n_rows);
        let is_split = |range: usize| {
            let [first, last] = spans[range];
            parts.of_group(first as usize) != parts.of_group(last as usize)
        };
        let is_early = |range: usize| is_split(range) || rows(range, range + 1).end > first_exported;
        let mut written_late = vec![false; spans.len()];
        is_late.iter().for_each(|&row| written_late[row as usize / width] = true);
        let (mut tiles, mut begun, mut completed) = (Vec::new(), Vec::new(), Vec::new());
        let (mut shared_rows, mut shared_tiles) = (Vec::new(), Vec::new());
        for run in runs(&spans, |a, b| a[0] == a[1] && a == b) {
            let number = tiles.len() as u32;
            match run.clone().any(|range| is_split(range) || written_late[range]) {
                true => shared_tiles.push(number),
                false => completed.push((spans[run.start][1] as usize, number)),
            }
            tiles.push(rows(run.start, run.end));
        }
        for run in runs(&spans, |a, b| a[0] == b[0]) {
            // Within a run, ranges of several threads, or for other ranks, come before all others.
            let begins_at = spans[run.start][0] as usize;
            let mut begin = run.start;
            while begin < run.end {
                let early_ones = is_early(begin);
                let end = (begin..run.end).find(|&range| is_early(range) != early_ones).unwrap_or(run.end);
                match early_ones {
                    true => shared_rows.push(rows(begin, end)),
                    false => begun.push((begins_at, rows(begin, end))),
                }
                begin = end;
            }
        }
        let n_groups = space.groups().len();
        Self {
            tiles,
            begun: Lists::new(n_groups, &begun),
            completed: Lists::new(n_groups, &completed),
            shared_rows,
            shared_tiles,
            spans,
        }
    }
}

/// Returns the first and the last group that access each range of `width` rows.
fn spans(space: &TensorSpace<'_>, rows: &Rows<'_>, layout: &Layout, width: usize) -> Vec<[u32; 2]> {
    let n_ranges = rows.n().div_ceil(width);
    let spans = parallel::map(n_ranges, 1 << 12, |_| [AtomicU32::new(u32::MAX), AtomicU32::new(0)]);
    let groups = space.groups();
    parallel::for_each(groups.len(), 1, |number| {
        for position in groups[number].cells.clone() {
            for (entity, &first) in space.firsts(position).iter().enumerate() {
                let len = layout.len(entity);
                // Ghosts are not among the rows.
                let begin = if len > 0 { rows.of(first) as usize } else { rows.n() };
                if begin < rows.n() {
                    for [first, last] in &spans[begin / width..=(begin + len - 1) / width] {
                        // Mostly known already: reading is cheaper.
                        if first.load(Relaxed) > number as u32 {
                            first.fetch_min(number as u32, Relaxed);
                        }
                        if last.load(Relaxed) < number as u32 {
                            last.fetch_max(number as u32, Relaxed);
                        }
                    }
                }
            }
        }
    });
    spans.into_iter().map(|span| span.map(AtomicU32::into_inner)).collect()
}

/// Returns runs of ranges in which each range goes with the one before.
fn runs(spans: &[[u32; 2]], goes_with: impl Fn([u32; 2], [u32; 2]) -> bool) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for range in 0..spans.len() {
        match runs.last_mut() {
            Some(run) if goes_with(spans[range - 1], spans[range]) => run.end = range + 1,
            _ => runs.push(range..range + 1),
        }
    }
    runs
}
