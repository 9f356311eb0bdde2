//! First degree of freedom of each entity.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::entities;
use femtile_device::parallel;

/// Cells that are visited together, and their new degrees of freedom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Their positions in the order of visits.
    pub cells: Range<usize>,
    /// Degrees of freedom that no earlier group has.
    pub dofs: Range<usize>,
    /// The number of these, at the start, that no later group has either.
    pub n_inner: usize,
}

/// Cells per group are a multiple of this, which every SIMD width divides.
pub(super) const LANES: usize = 16;

/// Returns the cells per group: some thousand unknowns, so that their part of a few vectors fits the cache.
///
/// # Source
/// `[kronbichler2022]`, equation (9), for one component.
fn cells_of_group(degree: usize, d: usize) -> usize {
    (1024 * 8 / (degree + 1).pow(d as u32)).max(1).next_multiple_of(LANES)
}

/// Numbers the entities of all cells, `[n_cells][3^d]`, group by group. In each group, entities of this group
/// only come first, then those shared with later groups. The number of an entity becomes that of its first
/// degree of freedom.
///
/// # Source
/// `[kronbichler2022]`, section 5.3.
pub(super) fn number(entities: &mut [u32], n_entities: usize, degree: usize, d: usize) -> Vec<Group> {
    let per_cell = 3usize.pow(d as u32);
    let n_cells = entities.len() / per_cell;
    let n_dofs_of: Vec<u32> =
        (0..per_cell).map(|local| (degree - 1).pow(entities::dimension(local, d) as u32) as u32).collect();
    let size = cells_of_group(degree, d);
    let Meetings { first, last } = Meetings::new(entities, n_entities, size * per_cell);
    // New entities of a group, in the order of its cells: the entity, its length, and whether no later group has it.
    let met = |group: usize, cells: &[u32], found: &mut dyn FnMut(u32, u32, bool)| {
        for (at, &entity) in cells.iter().enumerate() {
            if first[entity as usize] == (group * size * per_cell + at) as u64 {
                found(entity, n_dofs_of[at % per_cell], last[entity as usize] == group as u32);
            }
        }
    };
    let count = |begin: usize, cells: &[u32]| {
        let group = begin / (size * per_cell);
        let (mut n_inner, mut n_outer) = (0, 0);
        met(group, cells, &mut |_, n, is_inner| *(if is_inner { &mut n_inner } else { &mut n_outer }) += n);
        [n_inner as usize, n_outer as usize]
    };
    let counts = parallel::map_chunks(entities, size * per_cell, count);
    let mut groups: Vec<Group> = Vec::with_capacity(counts.len());
    for (group, [n_inner, n_outer]) in counts.into_iter().enumerate() {
        let begin = groups.last().map_or(0, |group| group.dofs.end);
        groups.push(Group {
            cells: group * size..((group + 1) * size).min(n_cells),
            dofs: begin..begin + n_inner + n_outer,
            n_inner,
        });
    }
    let begins = parallel::map(n_entities, 1, |_| AtomicU32::new(0));
    parallel::map_chunks(entities, size * per_cell, |begin, cells| {
        let number = begin / (size * per_cell);
        let group = &groups[number];
        let mut next = [group.dofs.start as u32, (group.dofs.start + group.n_inner) as u32];
        met(number, cells, &mut |entity, n, is_inner| {
            let next = &mut next[usize::from(!is_inner)];
            begins[entity as usize].store(*next, Ordering::Relaxed);
            *next += n;
        });
    });
    parallel::for_chunks_mut(entities, 4096, |_, entities| {
        entities.iter_mut().for_each(|entity| *entity = begins[*entity as usize].load(Ordering::Relaxed));
    });
    groups
}

/// First and last occurrence of each entity in the order of visits.
struct Meetings {
    /// The first place among the entities of all cells.
    first: Vec<u64>,
    /// The last group.
    last: Vec<u32>,
}

impl Meetings {
    /// Finds them for `per_group` entities of cells per group.
    fn new(entities: &[u32], n_entities: usize, per_group: usize) -> Self {
        let first = parallel::map(n_entities, 1, |_| AtomicU64::new(u64::MAX));
        let last = parallel::map(n_entities, 1, |_| AtomicU32::new(0));
        parallel::map_chunks(entities, per_group, |begin, cells| {
            let group = begin / per_group;
            for (place, &entity) in (begin as u64..).zip(cells) {
                let (first, last) = (&first[entity as usize], &last[entity as usize]);
                // A load before the atomic update is cheaper.
                if first.load(Ordering::Relaxed) > place {
                    first.fetch_min(place, Ordering::Relaxed);
                }
                if last.load(Ordering::Relaxed) < group as u32 {
                    last.fetch_max(group as u32, Ordering::Relaxed);
                }
            }
        });
        Self {
            first: first.into_iter().map(AtomicU64::into_inner).collect(),
            last: last.into_iter().map(AtomicU32::into_inner).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Group by group: first entities that no later group has, then the rest, in the order of cells.
    fn one_after_another(entities: &mut [u32], n_entities: usize, degree: usize, d: usize) -> Vec<Group> {
        let (per_cell, size) = (3usize.pow(d as u32), cells_of_group(degree, d));
        let n_cells = entities.len() / per_cell;
        let mut last = vec![0; n_entities];
        for (group, cells) in entities.chunks(size * per_cell).enumerate() {
            cells.iter().for_each(|&entity| last[entity as usize] = group);
        }
        let (mut first, mut groups, mut next) = (vec![u32::MAX; n_entities], Vec::new(), 0);
        for (group, cells) in entities.chunks(size * per_cell).enumerate() {
            let (begin, mut n_inner) = (next, 0);
            for is_inner in [true, false] {
                for (at, &entity) in cells.iter().enumerate() {
                    let entity = entity as usize;
                    if first[entity] == u32::MAX && (!is_inner || last[entity] == group) {
                        first[entity] = next as u32;
                        next += (degree - 1).pow(entities::dimension(at % per_cell, d) as u32);
                    }
                }
                n_inner = if is_inner { next - begin } else { n_inner };
            }
            let cells = group * size..((group + 1) * size).min(n_cells);
            groups.push(Group { cells, dofs: begin..next, n_inner });
        }
        entities.iter_mut().for_each(|entity| *entity = first[*entity as usize]);
        groups
    }

    #[test]
    fn entities_are_numbered_as_one_thread_would_number_them() {
        for (n_cells, degree, d) in [(0, 2, 3), (1, 1, 2), (37, 10, 3), (1009, 3, 2), (499, 4, 3)] {
            let per_cell = 3usize.pow(d as u32);
            let n_entities = n_cells * per_cell / 3 + per_cell;
            // Any table serves: neighbours in it have entities in common, and so have some that are far apart.
            let entity = |at: usize| ((at / 3 + at * at % 101 * (at % 7 / 6)) % n_entities) as u32;
            let given: Vec<u32> = (0..n_cells * per_cell).map(entity).collect();
            let (mut found, mut expected) = (given.clone(), given);
            let groups = number(&mut found, n_entities, degree, d);
            assert_eq!(groups, one_after_another(&mut expected, n_entities, degree, d));
            assert_eq!(found, expected, "{n_cells} cells of degree {degree}");
        }
    }
}
