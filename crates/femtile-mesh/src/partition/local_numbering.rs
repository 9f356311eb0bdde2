//! The numbers of nodes in a part.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU32};

use femtile_device::parallel;

use super::classes::by_class;
use super::part::ABSENT;
use super::subset::{BITS, Subset};
use crate::Mesh;

/// Cells per batch of a thread.
const CELLS: usize = BITS << 6;
/// A node of a cell of the part.
pub(super) const HERE: u8 = 1;
/// A node of a cell of the part with a node of another rank: that rank copies it, unless it owns it.
pub(super) const COPIED: u8 = HERE | 2;

/// The cells with a node that the rank owns and others for which `is_added` holds, and the marks of all nodes.
pub(super) fn touched(
    mesh: &Mesh,
    owners: &[u32],
    rank: u32,
    is_added: &(impl Fn(u32) -> bool + Sync),
) -> (Subset, Vec<AtomicU8>) {
    let marks = parallel::map(mesh.n_nodes(), parallel::CHEAP, |_| AtomicU8::new(0));
    let nodes = Owners { owners, rank, marks: &marks };
    let words = match mesh.kind.n_nodes() {
        2 => touched_words::<2>(mesh, &nodes, is_added),
        3 => touched_words::<3>(mesh, &nodes, is_added),
        4 => touched_words::<4>(mesh, &nodes, is_added),
        _ => touched_words::<8>(mesh, &nodes, is_added),
    };
    (Subset::new(words), marks)
}

/// The owners of nodes, and their marks for a rank.
struct Owners<'o> {
    owners: &'o [u32],
    rank: u32,
    marks: &'o [AtomicU8],
}

/// Marks the nodes of [touched] cells of `N` nodes; returns the bits of the cells.
fn touched_words<const N: usize>(
    mesh: &Mesh,
    &Owners { owners, rank, marks }: &Owners<'_>,
    is_added: &(impl Fn(u32) -> bool + Sync),
) -> Vec<u64> {
    let is_taken = |cell: usize, nodes: &[u32; N]| {
        let n_owned: usize = nodes.iter().map(|&node| usize::from(owners[node as usize] == rank)).sum();
        let is_taken = n_owned > 0 || is_added(cell as u32);
        if is_taken {
            let mark = if n_owned < N { COPIED } else { HERE };
            nodes.iter().for_each(|&node| add_mark(&marks[node as usize], mark));
        }
        is_taken
    };
    let word = |(first, cells): (usize, &[[u32; N]])| {
        let bits = (first..).zip(cells).map(|(cell, nodes)| u64::from(is_taken(cell, nodes)));
        bits.zip(0..).fold(0, |word, (bit, place)| word | bit << place)
    };
    let of_cells = |begin: usize, cells: &[[u32; N]]| {
        (begin..).step_by(BITS).zip(cells.chunks(BITS)).map(word).collect::<Vec<u64>>()
    };
    parallel::map_chunks(mesh.cells.as_chunks().0, CELLS, of_cells).concat()
}

/// Most marks are there already, and to read one costs less than to write it.
fn add_mark(marks: &AtomicU8, mark: u8) {
    if marks.load(Relaxed) & mark != mark {
        marks.fetch_or(mark, Relaxed);
    }
}

/// Sorts nodes by their owners, those of one by their numbers.
pub(super) fn sort_ghosts(nodes: &mut [u32], owners: &[u32]) {
    let key = |i: usize| u64::from(owners[nodes[i] as usize]) << 32 | u64::from(nodes[i]);
    let mut keys = parallel::map(nodes.len(), parallel::CHEAP, key);
    parallel::sort(&mut keys);
    nodes.iter_mut().zip(keys).for_each(|(node, key)| *node = key as u32);
}

/// Numbers of `n` nodes none of which is in a part.
pub(super) fn absent(n: usize) -> Vec<AtomicU32> {
    parallel::map(n, parallel::CHEAP, |_| AtomicU32::new(ABSENT))
}

/// Numbers nodes in their order.
pub(super) fn number(nodes: &[u32], numbers: &[AtomicU32]) {
    let give = |i: usize| numbers[nodes[i] as usize].store(i as u32, Relaxed);
    parallel::for_each(nodes.len(), parallel::CHEAP, give);
}

/// The nodes of a part in its order.
pub(super) struct LocalNumbering {
    /// Number of each node in the whole mesh.
    pub(super) nodes: Vec<u32>,
    /// Number of owned nodes, which come first.
    pub(super) n_owned: usize,
    /// Local number of each global node.
    pub(super) local: Vec<AtomicU32>,
}

impl LocalNumbering {
    /// Numbers the nodes with these [marks](touched).
    pub(super) fn new(marks: &[AtomicU8], owners: &[u32], rank: u32) -> Self {
        let class = |node: usize| match (marks[node].load(Relaxed), owners[node] == rank) {
            (0, _) => 3,
            (HERE, true) => 0,
            (_, true) => 1,
            (_, false) => 2,
        };
        let (mut nodes, [inner, copied, _]) = by_class::<3>(marks.len(), class);
        let n_owned = inner + copied;
        sort_ghosts(&mut nodes[n_owned..], owners);
        let local = absent(marks.len());
        number(&nodes, &local);
        Self { nodes, n_owned, local }
    }
}
