//! Order in which thread blocks visit cells, and targets of the values of cells.

use std::sync::atomic::{AtomicU32, Ordering};

use femtile_device::cpu::zeroed_vec;
use femtile_device::parallel;
use femtile_linalg::LinalgError;
use femtile_space::TensorSpace;
use rayon::prelude::*;

use super::groups::{alone, apart, cuts, every};
use super::visited::VisitedEntities;
use crate::local_numbering::{LocalNumbering, lengths};

/// Stands for no cell, no list, no unknown.
pub(super) const NONE: u32 = u32::MAX;

/// The mark of a cell whose inner unknowns another rank owns, beside those of its entities.
const OF_OTHER: u32 = 1 << 31;

/// The words of a cell, as in the kernel: first unknowns of its entities, targets of their values, marks, a list and the
/// place of its metric.
#[derive(Debug, Clone, Copy)]
struct Words {
    /// Number of entities, and the place of the first target.
    entities: usize,
}

impl Words {
    fn of(space: &TensorSpace<'_>) -> Self {
        Self { entities: 3usize.pow(space.dimension() as u32) }
    }

    fn len(self) -> usize {
        (self.metric() + 1).next_multiple_of(8)
    }

    fn added(self) -> usize {
        2 * self.entities
    }

    fn shared(self) -> usize {
        self.added() + 1
    }

    fn constrained(self) -> usize {
        self.added() + 2
    }

    fn list(self) -> usize {
        self.added() + 3
    }

    fn metric(self) -> usize {
        self.added() + 4
    }
}

/// Cells of a space, distributed to thread blocks.
///
/// The cells of a group belong to one block, which visits them in batches. If a group is a single batch,
/// every cell writes shared unknowns to places of its own. Otherwise cells of a batch share nothing, and a
/// group writes the unknowns that it shares with other groups to places of its own.
#[derive(Debug)]
pub(super) struct Batches {
    /// First batch of each group: `[n_groups + 1]`.
    pub begins: Vec<u32>,
    /// Position of the cell at each place of each batch, or [`NONE`].
    pub slots: Vec<u32>,
    /// Words of the cells of all slots, of the same number each.
    pub words: Vec<u32>,
    /// All unknowns of irregular cells.
    pub lists: Vec<u32>,
    pub shares: Shares,
}

/// Entities that several groups have, first faces, then edges, then vertices, and the start of their shares in the
/// order of summation. The faces of quadrilaterals are their edges.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// Number of stored shares.
    pub len: usize,
    /// Numbers of faces, edges and vertices.
    pub counts: [usize; 3],
    /// Unknowns of a face and of an edge.
    pub lengths: [usize; 2],
    /// First row of each.
    pub rows: Vec<u32>,
    /// The part of `places` of each edge and vertex: `[n_edges + n_vertices + 1]`; faces have two places each.
    pub begins: Vec<u32>,
    pub places: Vec<u32>,
}

/// Runs that a thread sorts by kind at a time.
const PART: usize = 1 << 14;

/// First row, first share, length.
type Run = (u32, u32, u32);

fn too_many_shares(n_shares: u64) -> LinalgError {
    let message = format!("{n_shares} shared values exceed 32-bit numbers: take more cells per group");
    LinalgError::Setting { field: "cells_per_group", message }
}

impl Batches {
    /// Creates batches of `cells` cells, and groups of at least `per_group`.
    ///
    /// # Errors
    /// If there are more than 2³² shares of all components.
    pub fn new(
        space: &TensorSpace<'_>,
        (cells, per_group): (usize, usize),
        components: usize,
        (constrained, numbers): (&[u32], Option<LocalNumbering<'_>>),
    ) -> Result<Self, LinalgError> {
        let is_alone = per_group <= cells;
        let cuts = if is_alone { every(space.n_cells(), cells) } else { cuts(space, per_group) };
        let of_groups = parallel::map(cuts.len() - 1, 1, |group| {
            let positions = cuts[group]..cuts[group + 1];
            if is_alone { alone(positions, cells) } else { apart(space, positions, cells) }
        });
        let mut begins = vec![0];
        let mut slots = Vec::with_capacity(space.n_cells());
        for group in &of_groups {
            slots.extend_from_slice(group);
            begins.push((slots.len() / cells) as u32);
        }
        let mut units: Vec<u32> = (0..space.n_cells() as u32).collect();
        if !is_alone {
            for (group, ends) in cuts.windows(2).enumerate() {
                units[ends[0]..ends[1]].fill(group as u32);
            }
        }
        let mut batches =
            Self { begins, slots, words: Vec::new(), lists: Vec::new(), shares: Shares::default() };
        batches.write(space, cells, &units, (constrained, numbers))?;
        let n_shares = batches.shares.len as u64 * components as u64;
        if n_shares > u64::from(u32::MAX) {
            return Err(too_many_shares(n_shares));
        }
        Ok(batches)
    }

    /// Writes the words of all cells, in batches of `cells`; `units` gives the unit of each cell, the cell itself or its
    /// group.
    fn write(
        &mut self,
        space: &TensorSpace<'_>,
        cells: usize,
        units: &[u32],
        (constrained, numbers): (&[u32], Option<LocalNumbering<'_>>),
    ) -> Result<(), LinalgError> {
        let (layout, lengths) = (Words::of(space), lengths(space));
        let (is_constrained, owners) = (space.marks(constrained), owners(space, units, &lengths));
        let is_shared = |first: u32| owners[first as usize].load(Ordering::Relaxed) == SEVERAL;
        let entities = Entities {
            space,
            layout,
            units,
            lengths,
            is_constrained: &is_constrained,
            is_shared: &is_shared,
            numbers,
        };
        self.words = zeroed_vec(self.slots.len() * layout.len());
        let groups = self.groups(cells, layout);
        let write = |visited: &mut VisitedEntities, (slots, words): (&[u32], &mut [u32])| {
            entities.write(visited, slots, words)
        };
        let mut found: Vec<OfGroup> =
            groups.into_par_iter().map_init(VisitedEntities::default, write).collect();
        let mut before = Before::default();
        let places: Vec<Before> = found.iter().map(|group| before.add(group)).collect();
        if before.n_shares > u64::from(u32::MAX) {
            return Err(too_many_shares(before.n_shares));
        }
        let groups = self.groups(cells, layout).into_par_iter().zip(&places);
        groups.for_each(|((slots, words), before)| before.shift(slots, words, layout));
        self.lists = found.iter().flat_map(|group| &group.lists).copied().collect();
        found.par_iter_mut().zip(&places).for_each(|(group, before)| {
            group.runs.iter_mut().for_each(|run| run.1 += before.n_shares as u32);
        });
        let mut runs = found.into_iter().map(|group| group.runs).collect::<Vec<_>>().concat();
        // Nobody reads what this rank computes for others.
        runs.retain(|run| numbers.is_none_or(|numbers| (run.0 as usize) < numbers.n_owned));
        let per_edge = space.degree() - 1;
        let lengths = if space.dimension() == 3 { [per_edge * per_edge, per_edge] } else { [per_edge, 1] };
        self.shares = Shares::new(runs, before.n_shares as usize, lengths);
        Ok(())
    }

    /// Returns the slots and the words of each group.
    fn groups(&mut self, cells: usize, layout: Words) -> Vec<(&[u32], &mut [u32])> {
        let (mut slots, mut words) = (self.slots.as_slice(), self.words.as_mut_slice());
        let of_group = |ends: &[u32]| {
            let n = (ends[1] - ends[0]) as usize * cells;
            let own = slots.split_off(..n).unwrap_or_default();
            (own, words.split_off_mut(..n * layout.len()).unwrap_or_default())
        };
        self.begins.windows(2).map(of_group).collect()
    }

    /// Returns the bytes that a product reads of these lists.
    pub fn bytes(&self) -> usize {
        let Shares { rows, begins, places, .. } = &self.shares;
        4 * (self.words.len() + self.lists.len() + rows.len() + begins.len() + places.len())
    }
}

/// Data of the words of cells.
struct Entities<'a, S> {
    space: &'a TensorSpace<'a>,
    layout: Words,
    units: &'a [u32],
    /// Unknowns of each entity of a cell.
    lengths: Vec<u32>,
    /// By unknown.
    is_constrained: &'a [bool],
    /// Whether several units have the entity with this first unknown.
    is_shared: &'a S,
    numbers: Option<LocalNumbering<'a>>,
}

/// Contributions of a group to the lists of all groups, numbered from 0.
#[derive(Default)]
struct OfGroup {
    runs: Vec<Run>,
    lists: Vec<u32>,
    n_shares: u64,
    n_cells: u32,
}

impl<S: Fn(u32) -> bool> Entities<'_, S> {
    /// Writes the words of the cells of a group, with numbers that begin at 0.
    fn write(&self, visited: &mut VisitedEntities, slots: &[u32], words: &mut [u32]) -> OfGroup {
        let (mut group, layout) = (OfGroup::default(), self.layout);
        visited.reset(slots.len() * layout.entities);
        for (&position, words) in slots.iter().zip(words.chunks_exact_mut(layout.len())) {
            words[layout.list()] = NONE;
            if position == NONE {
                words[..layout.added()].fill(NONE);
                continue;
            }
            words[layout.metric()] = group.n_cells;
            group.n_cells += 1;
            self.write_cell(visited, position as usize, words, &mut group);
            if let Some(list) = self.space.irregular(position as usize) {
                words[layout.list()] = group.lists.len() as u32;
                group.lists.extend(list.iter().map(|&unknown| self.number(unknown)));
            }
        }
        group
    }

    /// The place of an unknown in vectors.
    fn number(&self, unknown: u32) -> u32 {
        self.numbers.map_or(unknown, |numbers| numbers.of[unknown as usize])
    }

    fn write_cell(
        &self,
        visited: &mut VisitedEntities,
        position: usize,
        words: &mut [u32],
        group: &mut OfGroup,
    ) {
        let (own, layout) = (self.units[position], self.layout);
        for (entity, (&first, &len)) in self.space.firsts(position).iter().zip(&self.lengths).enumerate() {
            if len == 0 {
                continue;
            }
            let number = self.number(first);
            words[entity] = number;
            words[layout.entities + entity] = number;
            let is_ghost = self.numbers.is_some_and(|numbers| number as usize >= numbers.n_owned);
            if is_ghost && entity == layout.entities / 2 {
                words[layout.added()] |= OF_OTHER;
            }
            if self.is_constrained[first as usize] {
                words[layout.constrained()] |= 1 << entity;
                continue;
            }
            // What belongs to another rank goes where it is not summed.
            let is_shared = is_ghost || (self.is_shared)(first);
            let [_, unit, target] = visited.entry(first);
            if *unit == own {
                words[layout.added()] |= 1 << entity;
            } else {
                (*unit, *target) = (own, number);
                if is_shared {
                    *target = group.n_shares as u32;
                    group.runs.push((number, group.n_shares as u32, len));
                    group.n_shares += u64::from(len);
                }
            }
            words[layout.shared()] |= u32::from(is_shared) << entity;
            words[layout.entities + entity] = *target;
        }
    }
}

/// Numbers of earlier groups.
#[derive(Debug, Clone, Copy, Default)]
struct Before {
    n_shares: u64,
    n_listed: u32,
    n_cells: u32,
}

impl Before {
    /// Adds the numbers of a group and returns those before it.
    fn add(&mut self, group: &OfGroup) -> Self {
        let before = *self;
        self.n_shares += group.n_shares;
        self.n_listed += group.lists.len() as u32;
        self.n_cells += group.n_cells;
        before
    }

    /// Makes the numbers of a group those of all groups.
    fn shift(&self, slots: &[u32], words: &mut [u32], layout: Words) {
        let cells = slots.iter().zip(words.chunks_exact_mut(layout.len())).filter(|(slot, _)| **slot != NONE);
        for (_, words) in cells {
            words[layout.metric()] += self.n_cells;
            if words[layout.list()] != NONE {
                words[layout.list()] += self.n_listed;
            }
            let is_shared = words[layout.shared()];
            let targets = words[layout.entities..layout.added()].iter_mut().enumerate();
            let of_shares = targets.filter(|(entity, _)| is_shared >> entity & 1 == 1);
            of_shares.for_each(|(_, target)| *target += self.n_shares as u32);
        }
    }
}

impl Shares {
    /// Creates the shares from runs; `lengths` are the unknowns of a face and of an edge.
    fn new(mut runs: Vec<Run>, len: usize, lengths: [usize; 2]) -> Self {
        runs.par_sort_unstable();
        let parts: Vec<ByKind> =
            parts_of(&runs).into_par_iter().map(|runs| ByKind::of_runs(runs, lengths)).collect();
        let ByKind { faces, others: [edges, vertices] } = ByKind::joined(parts);
        let counts = [faces.len(), edges.rows.len(), vertices.rows.len()];
        let of_faces = || faces.iter().map(|face| face[0]);
        let n_of_faces = 2 * faces.len() as u32;
        let after_edges = n_of_faces + edges.places.len() as u32;
        let ends = edges.ends.iter().map(|end| n_of_faces + end);
        let ends = ends.chain(vertices.ends.iter().map(|end| after_edges + end));
        Self {
            len,
            counts,
            lengths,
            rows: of_faces().chain(edges.rows).chain(vertices.rows).collect(),
            begins: std::iter::once(n_of_faces).chain(ends).collect(),
            places: faces
                .iter()
                .flat_map(|face| [face[1], face[2]])
                .chain(edges.places)
                .chain(vertices.places)
                .collect(),
        }
    }
}

/// Splits sorted runs into parts for threads, between rows.
fn parts_of(mut runs: &[Run]) -> Vec<&[Run]> {
    let mut parts = Vec::new();
    while runs.len() > PART {
        let row = runs[PART].0;
        let end = runs.partition_point(|run| run.0 <= row);
        parts.extend(runs.split_off(..end));
    }
    parts.push(runs);
    parts
}

/// Entities that several units have.
#[derive(Default)]
struct ByKind {
    /// First row of faces with two places, and the places.
    faces: Vec<[u32; 3]>,
    /// Edges and vertices.
    others: [Others; 2],
}

impl ByKind {
    /// Sorts the entities of runs by kind; `lengths` are the unknowns of a face and of an edge.
    fn of_runs(runs: &[Run], lengths: [usize; 2]) -> Self {
        let ([of_face, per_edge], mut found) = (lengths.map(|len| len as u32), Self::default());
        for runs in runs.chunk_by(|a, b| a.0 == b.0) {
            match runs {
                // In degree two all entities have one unknown; one with two shares counts as a face. Edges of quadrilaterals
                // with more shares count as vertices.
                [first, second] if first.2 == of_face => found.faces.push([first.0, first.1, second.1]),
                // A face with more shares counts as one edge per row.
                _ => {
                    let part = if runs[0].2 == 1 { 1 } else { per_edge };
                    let others = &mut found.others[usize::from(part == 1)];
                    (0..runs[0].2).step_by(part as usize).for_each(|i| others.add(runs, i));
                }
            }
        }
        found
    }

    fn joined(parts: Vec<Self>) -> Self {
        let mut joined = Self::default();
        for Self { faces, others } in parts {
            joined.faces.extend(faces);
            joined.others.iter_mut().zip(others).for_each(|(to, from)| to.append(from));
        }
        joined
    }
}

/// Edges or vertices that several units have.
#[derive(Default)]
struct Others {
    rows: Vec<u32>,
    /// End of the places of each.
    ends: Vec<u32>,
    places: Vec<u32>,
}

impl Others {
    /// Adds row `i` of runs over the same rows.
    fn add(&mut self, runs: &[Run], i: u32) {
        self.rows.push(runs[0].0 + i);
        self.places.extend(runs.iter().map(|run| run.1 + i));
        self.ends.push(self.places.len() as u32);
    }

    /// Appends others.
    fn append(&mut self, others: Self) {
        let before = self.places.len() as u32;
        self.rows.extend(others.rows);
        self.ends.extend(others.ends.iter().map(|end| before + end));
        self.places.extend(others.places);
    }
}

/// Marks an entity of several units.
const SEVERAL: u32 = u32::MAX - 1;

/// Returns the unit of each entity, by its first unknown.
fn owners(space: &TensorSpace<'_>, units: &[u32], lengths: &[u32]) -> Vec<AtomicU32> {
    let owners: Vec<AtomicU32> = (0..space.n_dofs()).into_par_iter().map(|_| AtomicU32::new(NONE)).collect();
    parallel::for_each(units.len(), 256, |position| {
        let own = units[position];
        for (&first, _) in space.firsts(position).iter().zip(lengths).filter(|(_, len)| **len > 0) {
            let owner = &owners[first as usize];
            let visited = owner.compare_exchange(NONE, own, Ordering::Relaxed, Ordering::Relaxed);
            if visited.is_err_and(|other| other != own) {
                owner.store(SEVERAL, Ordering::Relaxed);
            }
        }
    });
    owners
}
