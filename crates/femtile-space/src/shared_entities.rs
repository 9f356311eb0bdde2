//! Edges and faces of cells, numbered so that cells with the same corners share them.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use femtile_device::parallel;

/// Entities of one dimension that several cells share, numbered.
pub(crate) struct SharedEntities {
    /// Corners of each entity of a cell.
    corners: Vec<Vec<usize>>,
    /// Number of each: `[n_cells][n_locals]`.
    pub numbers: Vec<u32>,
    /// The place among `numbers` of the first cell with each entity: `[len]`.
    leaders: Vec<u32>,
    per_cell: usize,
}

impl SharedEntities {
    /// Numbers edges or faces, given by their corners in a cell, in the order of their lowest nodes; cell corners are
    /// `[n_cells][per_cell]`.
    ///
    /// An edge is identified by its two corners, a face by the lowest three.
    pub fn number(cell_corners: &[u32], per_cell: usize, corners: Vec<Vec<usize>>) -> Self {
        let n_locals = corners.len();
        let key = |place: usize| {
            let cell = &cell_corners[place / n_locals * per_cell..][..per_cell];
            let mut nodes = [u32::MAX; 4];
            let own = &corners[place % n_locals];
            for (node, &corner) in nodes.iter_mut().zip(own) {
                *node = cell[corner];
            }
            nodes[..own.len()].sort_unstable();
            let third = if own.len() == 2 { 0 } else { nodes[2] };
            u128::from(nodes[0]) << 96 | u128::from(nodes[1]) << 64 | u128::from(third) << 32 | place as u128
        };
        let n_places = cell_corners.len() / per_cell * n_locals;
        let keys = sorted(n_places, key);
        let (numbers, leaders) = number_runs(&keys);
        Self { corners, numbers, leaders, per_cell }
    }

    /// Returns the number of entities.
    pub fn len(&self) -> usize {
        self.leaders.len()
    }

    /// Returns the number of entities of a cell.
    pub fn n_locals(&self) -> usize {
        self.corners.len()
    }

    /// Returns the corner nodes of the entity at a place of [`Self::numbers`], in the order of its cell.
    pub fn nodes<'a>(&'a self, cell_corners: &'a [u32], place: usize) -> impl Iterator<Item = u32> + 'a {
        let cell = &cell_corners[place / self.n_locals() * self.per_cell..];
        self.corners[place % self.n_locals()].iter().map(|&corner| cell[corner])
    }

    /// Returns the place of the first cell with the same entity.
    pub fn leader(&self, place: usize) -> usize {
        self.leaders[self.numbers[place] as usize] as usize
    }

    /// Returns whether a cell has the corners of its entity in the same order as the first cell.
    pub fn agrees(&self, cell_corners: &[u32], place: usize) -> bool {
        let leader = self.leader(place);
        leader == place || self.nodes(cell_corners, place).eq(self.nodes(cell_corners, leader))
    }

    /// Returns whether all cells do.
    pub fn all_agree(&self, cell_corners: &[u32]) -> bool {
        parallel::all(self.numbers.len(), 1, |place| self.agrees(cell_corners, place))
    }
}

/// Places that a thread takes at least.
const PLACES: usize = 1 << 12;

/// Returns the keys of all places in ascending order: distributed by their first words, then sorted among the few that have
/// the same.
fn sorted(n_places: usize, key: impl Fn(usize) -> u128 + Sync) -> Vec<u128> {
    let first_word = |key: u128| (key >> 96) as usize;
    let keys = parallel::map(n_places, PLACES, key);
    let n_words =
        parallel::map_chunks(&keys, PLACES, |_, keys| keys.iter().map(|&key| first_word(key) + 1).max());
    let n_words = n_words.into_iter().flatten().max().unwrap_or(0);
    let ends = parallel::map(n_words, PLACES, |_| AtomicU32::new(0));
    parallel::for_each(n_places, PLACES, |place| {
        ends[first_word(keys[place])].fetch_add(1, Ordering::Relaxed);
    });
    let lengths: Vec<u32> = ends.into_iter().map(AtomicU32::into_inner).collect();
    let begin = |before: &mut u32, length: &u32| {
        *before += length;
        Some(AtomicU32::new(*before - length))
    };
    let begins: Vec<AtomicU32> = lengths.iter().scan(0, begin).collect();
    // Keys lie in two halves of 64 bits while threads distribute them.
    let halves = parallel::map(2 * n_places, PLACES, |_| AtomicU64::new(0));
    parallel::for_each(n_places, PLACES, |place| {
        let key = keys[place];
        let at = begins[first_word(key)].fetch_add(1, Ordering::Relaxed) as usize;
        halves[2 * at].store((key >> 64) as u64, Ordering::Relaxed);
        halves[2 * at + 1].store(key as u64, Ordering::Relaxed);
    });
    let half = |at: usize| u128::from(halves[at].load(Ordering::Relaxed));
    let mut keys = parallel::map(n_places, PLACES, |at| half(2 * at) << 64 | half(2 * at + 1));
    let mut rest = keys.as_mut_slice();
    let runs = lengths.iter().map(|&length| rest.split_off_mut(..length as usize).unwrap_or_default());
    parallel::for_each_item(runs.collect(), 256, |run: &mut [u128]| run.sort_unstable());
    keys
}

/// Keys per piece that a thread numbers.
const PIECE: usize = 1 << 16;

/// Returns, for each last word of the sorted keys, the number of its run of equal leading words, and the first word of
/// each run.
fn number_runs(keys: &[u128]) -> (Vec<u32>, Vec<u32>) {
    let begins = |at: usize| at == 0 || keys[at - 1] >> 32 != keys[at] >> 32;
    let pieces: Vec<Range<usize>> =
        (0..keys.len()).step_by(PIECE).map(|at| at..(at + PIECE).min(keys.len())).collect();
    let leaders_of = |piece: &Range<usize>| -> Vec<u32> {
        piece.clone().filter(|&at| begins(at)).map(|at| keys[at] as u32).collect()
    };
    let leaders = parallel::map(pieces.len(), 1, |piece| leaders_of(&pieces[piece]));
    let counts = leaders.iter().scan(0, |before, leaders| {
        let begin = *before;
        *before += leaders.len() as u32;
        Some(begin)
    });
    let numbers = parallel::map(keys.len(), 1, |_| AtomicU32::new(0));
    parallel::for_each_item(
        pieces.into_iter().zip(counts).collect(),
        1,
        |(piece, mut next): (Range<usize>, u32)| {
            for at in piece {
                next += u32::from(begins(at));
                numbers[keys[at] as u32 as usize].store(next - 1, Ordering::Relaxed);
            }
        },
    );
    (numbers.into_iter().map(AtomicU32::into_inner).collect(), leaders.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_whatever_their_first_words() {
        for n in [0, 1, 2, 1009, 3 * PLACES + 5] {
            for spread in [1, 7, n.max(1)] {
                let key =
                    |i: usize| ((i * i % spread) as u128) << 96 | ((i * 7919 % 11) as u128) << 64 | i as u128;
                let mut expected: Vec<u128> = (0..n).map(key).collect();
                expected.sort_unstable();
                assert_eq!(sorted(n, key), expected, "{n} keys of {spread} words");
            }
        }
    }

    #[test]
    fn runs_are_numbered_as_one_thread_would_across_pieces() {
        for n in [0, 1, 2, PIECE - 1, 2 * PIECE + 7] {
            // Runs of one to five keys, with their last words permuted.
            let run = |i: usize| (i / 15 * 5 + [0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4][i % 15]) as u128;
            let mut keys: Vec<u128> = (0..n).map(|i| run(i) << 32 | (i * 7919 % n.max(1)) as u128).collect();
            keys.sort_unstable();
            let (numbers, leaders) = number_runs(&keys);
            let groups: Vec<&[u128]> = keys.chunk_by(|a, b| a >> 32 == b >> 32).collect();
            assert_eq!(leaders, groups.iter().map(|group| group[0] as u32).collect::<Vec<_>>());
            for (number, group) in groups.iter().enumerate() {
                assert!(group.iter().all(|&key| numbers[key as u32 as usize] == number as u32), "{n}");
            }
        }
    }
}
