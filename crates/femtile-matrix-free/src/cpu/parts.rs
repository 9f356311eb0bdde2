//! Which cells each thread takes, and what cells of several threads share.

use std::ops::Range;

use super::layout::Layout;
use super::numbers::Numbers;
use femtile_fem::dofs::{Group, TensorSpace};

/// An entity of a cell that its batch does not add to the result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub lane: u8,
    pub entity: u8,
    /// Where its values go among the shares instead; nowhere where it is constrained.
    pub share: Option<u32>,
}

/// An entity that cells of several threads have.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub rows: Range<usize>,
    /// Where the shares of it begin, in the order in which one thread would add them.
    pub shares: Vec<u32>,
}

/// Cells dealt out to threads.
#[derive(Debug)]
pub(super) struct Parts {
    /// Groups of each thread.
    pub groups: Vec<Range<usize>>,
    pub marks: Vec<Mark>,
    /// Where the marks of each batch begin: `[n_batches + 1]`.
    mark_begins: Vec<u32>,
    pub shared: Vec<Shared>,
    pub n_shares: usize,
}

impl Parts {
    /// For a number of threads; `is_constrained` is asked about the first row of an entity, which speaks for all.
    pub fn new(
        space: &TensorSpace<'_>,
        numbers: &Numbers,
        layout: &Layout,
        n_threads: usize,
        is_constrained: impl Fn(usize) -> bool,
    ) -> Self {
        let n_groups = space.groups().len();
        let n_parts = n_threads.min(n_groups).max(1);
        let groups: Vec<Range<usize>> =
            (0..n_parts).map(|part| n_groups * part / n_parts..n_groups * (part + 1) / n_parts).collect();
        let owners = owners(space, layout, &groups);
        let mut parts =
            Self { groups, marks: Vec::new(), mark_begins: vec![0], shared: Vec::new(), n_shares: 0 };
        // The place in `shared` of each entity that is, by its first row.
        let mut places = vec![u32::MAX; owners.len()];
        for batch in 0..numbers.n_batches() {
            let firsts = numbers.firsts(batch);
            for entity in (0..layout.n_entities()).filter(|&entity| layout.len(entity) > 0) {
                for lane in 0..numbers.n_active(batch) {
                    let first = firsts[entity * numbers.lanes + lane] as usize;
                    let share = if is_constrained(first) {
                        None
                    } else if owners.get(first) == Some(&SEVERAL) {
                        Some(parts.add_share(first, layout.len(entity), &mut places))
                    } else {
                        continue;
                    };
                    parts.marks.push(Mark { lane: lane as u8, entity: entity as u8, share });
                }
            }
            parts.mark_begins.push(parts.marks.len() as u32);
        }
        parts
    }

    fn add_share(&mut self, first: usize, len: usize, places: &mut [u32]) -> u32 {
        if places[first] == u32::MAX {
            places[first] = self.shared.len() as u32;
            self.shared.push(Shared { rows: first..first + len, shares: Vec::new() });
        }
        let share = self.n_shares as u32;
        self.shared[places[first] as usize].shares.push(share);
        self.n_shares += len;
        share
    }

    /// The thread that has a group.
    pub fn of_group(&self, group: usize) -> usize {
        self.groups.partition_point(|groups| groups.end <= group)
    }

    /// Marks of a batch.
    pub fn marks(&self, batch: usize) -> &[Mark] {
        &self.marks[self.mark_begins[batch] as usize..self.mark_begins[batch + 1] as usize]
    }
}

/// Stands for an entity that several threads have.
const SEVERAL: u16 = u16::MAX;

/// The thread that has each entity, by its first row; nothing where there is one thread.
fn owners(space: &TensorSpace<'_>, layout: &Layout, parts: &[Range<usize>]) -> Vec<u16> {
    const NONE: u16 = u16::MAX - 1;
    if parts.len() == 1 {
        return Vec::new();
    }
    let mut owners = vec![NONE; space.n_dofs() * layout.components];
    for (part, groups) in parts.iter().enumerate() {
        let of = |group: &Group| group.cells.clone();
        for position in space.groups()[groups.clone()].iter().flat_map(of) {
            for (entity, &first) in space.firsts(position).iter().enumerate() {
                if layout.len(entity) > 0 {
                    let owner = &mut owners[first as usize * layout.components];
                    *owner =
                        if matches!(*owner, NONE) || *owner == part as u16 { part as u16 } else { SEVERAL };
                }
            }
        }
    }
    owners
}
