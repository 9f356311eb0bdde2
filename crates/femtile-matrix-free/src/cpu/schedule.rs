//! When ranges of the vectors are first and last touched by the loop over cells.

use std::ops::Range;

use super::layout::Layout;
use super::parts::Parts;
use femtile_fem::dofs::{Group, TensorSpace};

/// Unknowns of a range; a range has as many rows for each component.
pub(super) const RANGE: usize = 64;

/// Lists of things of numbered owners, one owner after another.
#[derive(Debug, Default)]
pub(super) struct Lists<T> {
    begins: Vec<usize>,
    entries: Vec<T>,
}

impl<T: Clone> Lists<T> {
    /// From pairs of an owner and a thing, in the order in which an owner's things are to stand.
    fn new(n_owners: usize, pairs: &[(usize, T)]) -> Self {
        let mut sorted: Vec<&(usize, T)> = pairs.iter().collect();
        sorted.sort_by_key(|(owner, _)| *owner);
        let begin = |owner: usize| sorted.partition_point(|(other, _)| *other < owner);
        Self {
            begins: (0..=n_owners).map(begin).collect(),
            entries: sorted.into_iter().map(|(_, thing)| thing.clone()).collect(),
        }
    }

    /// What an owner has.
    pub fn of(&self, owner: usize) -> &[T] {
        &self.entries[self.begins[owner]..self.begins[owner + 1]]
    }
}

/// The groups that touch each range, and what follows from that.
///
/// # Source
/// `[kronbichler2022]`, section 5.1: exact, for ranges of [`RANGE`] unknowns.
#[derive(Debug)]
pub(super) struct Schedule {
    /// The first and the last group to touch each range.
    pub spans: Vec<[u32; 2]>,
    /// Rows of each tile, ascending: ranges side by side that one group alone touches are one tile, others are alone.
    pub tiles: Vec<Range<usize>>,
    /// Rows that are first touched by each group, and by no other thread's.
    pub begun: Lists<Range<usize>>,
    /// Tiles that each group is the last to touch, and no other thread's does.
    pub completed: Lists<u32>,
    /// Rows that groups of several threads touch.
    pub early: Vec<Range<usize>>,
    /// Tiles that are complete only after all groups.
    pub late: Vec<u32>,
}

impl Schedule {
    /// `is_late` are rows that are written after all groups, ascending.
    pub fn new(space: &TensorSpace<'_>, layout: &Layout, parts: &Parts, is_late: &[u32]) -> Self {
        let (n_rows, width) = (space.n_dofs() * layout.components, RANGE * layout.components);
        let spans = spans(space, layout, width);
        let rows = |first: usize, end: usize| first * width..(end * width).min(n_rows);
        let is_split = |range: usize| {
            let [first, last] = spans[range];
            parts.of_group(first as usize) != parts.of_group(last as usize)
        };
        let mut written_late = vec![false; spans.len()];
        is_late.iter().for_each(|&row| written_late[row as usize / width] = true);
        let (mut tiles, mut begun, mut completed) = (Vec::new(), Vec::new(), Vec::new());
        let (mut early, mut late) = (Vec::new(), Vec::new());
        for run in runs(&spans, |a, b| a[0] == a[1] && a == b) {
            let number = tiles.len() as u32;
            match run.clone().any(|range| is_split(range) || written_late[range]) {
                true => late.push(number),
                false => completed.push((spans[run.start][1] as usize, number)),
            }
            tiles.push(rows(run.start, run.end));
        }
        for run in runs(&spans, |a, b| a[0] == b[0]) {
            // Within a run, ranges of several threads are done before all others.
            let begins_at = spans[run.start][0] as usize;
            let mut begin = run.start;
            while begin < run.end {
                let split = is_split(begin);
                let end = (begin..run.end).find(|&range| is_split(range) != split).unwrap_or(run.end);
                match split {
                    true => early.push(rows(begin, end)),
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
            early,
            late,
            spans,
        }
    }
}

/// The first and the last group to touch each range of `width` rows.
fn spans(space: &TensorSpace<'_>, layout: &Layout, width: usize) -> Vec<[u32; 2]> {
    let c = layout.components;
    let mut spans = vec![[u32::MAX, 0]; (space.n_dofs() * c).div_ceil(width)];
    for (number, Group { cells, .. }) in space.groups().iter().enumerate() {
        for position in cells.clone() {
            for (entity, &first) in space.firsts(position).iter().enumerate() {
                let (begin, len) = (first as usize * c, layout.len(entity));
                if len > 0 {
                    for [first, last] in &mut spans[begin / width..=(begin + len - 1) / width] {
                        *first = (*first).min(number as u32);
                        *last = number as u32;
                    }
                }
            }
        }
    }
    spans
}

/// Runs of ranges of which each goes with the one before.
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
