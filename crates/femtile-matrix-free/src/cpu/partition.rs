//! Distribution of cells to threads, and unknowns that cells of several threads share.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::AtomicU16;
use std::sync::atomic::Ordering::Relaxed;

use super::cell_unknowns::CellUnknowns;
use super::layout::Layout;
use super::rows::Rows;
use femtile_device::parallel;
use femtile_space::{Group, TensorSpace};

/// An entity of a cell that its batch does not add to the result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    pub lane: u8,
    pub entity: u8,
    pub reason: Reason,
}

/// Why an entity is marked.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reason {
    /// It is constrained.
    Constrained,
    /// Cells of several threads have it: the position of its values among the shares.
    Shared(u32),
    /// Another rank owns it: its first ghost.
    Ghost(u32),
}

/// An entity that cells of several threads have.
#[derive(Debug, Clone)]
pub(super) struct Shared {
    pub rows: Range<usize>,
    /// Start of each of its shares, in the order in which one thread would add them.
    pub shares: Vec<u32>,
}

/// Cells distributed to threads.
#[derive(Debug)]
pub(super) struct Partition {
    /// Groups of each thread.
    pub groups: Vec<Range<usize>>,
    pub marks: Vec<Mark>,
    /// Start of the marks of each batch: `[n_batches + 1]`.
    mark_begins: Vec<u32>,
    pub shared: Vec<Shared>,
    pub n_shares: usize,
}

impl Partition {
    /// Distributes the groups to threads; `is_constrained` is called with the first row or ghost of an entity, which stands
    /// for all.
    pub fn new(
        space: &TensorSpace<'_>,
        rows: &Rows<'_>,
        numbers: &CellUnknowns,
        layout: &Layout,
        n_threads: usize,
        is_constrained: impl Fn(usize) -> bool + Sync,
    ) -> Self {
        let n_groups = space.groups().len();
        let n_parts = n_threads.min(n_groups).max(1);
        let groups: Vec<Range<usize>> =
            (0..n_parts).map(|part| n_groups * part / n_parts..n_groups * (part + 1) / n_parts).collect();
        let owners = owners(space, rows, layout, &groups);
        let n_batches = numbers.n_batches();
        let pieces = parallel::map(n_batches.div_ceil(BATCHES), 1, |piece| {
            let batches = piece * BATCHES..n_batches.min((piece + 1) * BATCHES);
            Piece::of(batches, (numbers, rows.n()), layout, &owners, &is_constrained)
        });
        let mut parts =
            Self { groups, marks: Vec::new(), mark_begins: vec![0], shared: Vec::new(), n_shares: 0 };
        let mut places = HashMap::new();
        pieces.into_iter().for_each(|piece| parts.append(piece, layout, &mut places));
        parts
    }

    /// Appends the marks of further batches; `places` has the index in `shared` of each shared entity, by its first row.
    fn append(&mut self, piece: Piece, layout: &Layout, places: &mut HashMap<usize, usize>) {
        let begin = self.marks.len() as u32;
        self.mark_begins.extend(piece.mark_ends.iter().map(|end| begin + end));
        self.marks.extend(piece.marks);
        for (mark, first) in piece.shared {
            let mark = &mut self.marks[begin as usize + mark];
            let len = layout.len(mark.entity as usize);
            let place = *places.entry(first).or_insert_with(|| {
                self.shared.push(Shared { rows: first..first + len, shares: Vec::new() });
                self.shared.len() - 1
            });
            self.shared[place].shares.push(self.n_shares as u32);
            mark.reason = Reason::Shared(self.n_shares as u32);
            self.n_shares += len;
        }
    }

    /// Returns the thread of a group.
    pub fn of_group(&self, group: usize) -> usize {
        self.groups.partition_point(|groups| groups.end <= group)
    }

    /// Returns the marks of a batch.
    pub fn marks(&self, batch: usize) -> &[Mark] {
        &self.marks[self.mark_begins[batch] as usize..self.mark_begins[batch + 1] as usize]
    }
}

/// Batches whose marks are found by one thread.
const BATCHES: usize = 256;

/// The marks of some batches.
struct Piece {
    marks: Vec<Mark>,
    /// End of the marks of each batch.
    mark_ends: Vec<u32>,
    /// Marks of shared entities, with the first row of each.
    shared: Vec<(usize, usize)>,
}

impl Piece {
    fn of(
        batches: Range<usize>,
        (numbers, n_rows): (&CellUnknowns, usize),
        layout: &Layout,
        owners: &[AtomicU16],
        is_constrained: &(dyn Fn(usize) -> bool + Sync),
    ) -> Self {
        let mut piece = Self { marks: Vec::new(), mark_ends: Vec::new(), shared: Vec::new() };
        let is_shared = |first: usize| owners.get(first).is_some_and(|owner| owner.load(Relaxed) == SEVERAL);
        for batch in batches {
            let firsts = numbers.firsts(batch);
            for entity in (0..layout.n_entities()).filter(|&entity| layout.len(entity) > 0) {
                for lane in 0..numbers.n_active(batch) {
                    let first = firsts[entity * numbers.lanes + lane] as usize;
                    let mut mark =
                        |reason| piece.marks.push(Mark { lane: lane as u8, entity: entity as u8, reason });
                    let (is_ghost, is_constrained) = (first >= n_rows, is_constrained(first));
                    if is_ghost {
                        mark(Reason::Ghost((first - n_rows) as u32));
                    }
                    if is_constrained {
                        mark(Reason::Constrained);
                    }
                    if !is_ghost && !is_constrained && is_shared(first) {
                        piece.shared.push((piece.marks.len(), first));
                        // Its place is known when all pieces are joined.
                        piece.marks.push(Mark {
                            lane: lane as u8,
                            entity: entity as u8,
                            reason: Reason::Shared(0),
                        });
                    }
                }
            }
            piece.mark_ends.push(piece.marks.len() as u32);
        }
        piece
    }
}

/// Marks an entity of no thread.
const NONE: u16 = SEVERAL - 1;

/// Marks an entity of several threads.
const SEVERAL: u16 = u16::MAX;

/// Returns the thread of each entity, by its first row; empty for one thread.
fn owners(
    space: &TensorSpace<'_>,
    rows: &Rows<'_>,
    layout: &Layout,
    parts: &[Range<usize>],
) -> Vec<AtomicU16> {
    if parts.len() == 1 {
        return Vec::new();
    }
    let owners = parallel::map(rows.n_with_ghosts(), ROWS, |_| AtomicU16::new(NONE));
    // The result is the same in whatever order threads add themselves; each part is added by one thread.
    let add = |part: u16, owner: &AtomicU16| {
        let known = owner.load(Relaxed);
        let is_first = known == NONE && owner.compare_exchange(NONE, part, Relaxed, Relaxed).is_ok();
        if !is_first && known != part && known != SEVERAL {
            owner.store(SEVERAL, Relaxed);
        }
    };
    parallel::for_each(parts.len(), 1, |part| {
        let of = |group: &Group| group.cells.clone();
        for position in space.groups()[parts[part].clone()].iter().flat_map(of) {
            for (entity, &first) in space.firsts(position).iter().enumerate() {
                if layout.len(entity) > 0 {
                    add(part as u16, &owners[rows.of(first) as usize]);
                }
            }
        }
    });
    owners
}

/// Rows that a thread initialises at least.
const ROWS: usize = 1 << 14;
