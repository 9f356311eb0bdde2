//! The numbers of nodes in a part.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU32};

use rayon::prelude::*;

use super::classes::by_class;
use super::part::ABSENT;
use super::subset::{BITS, Subset};
use crate::Mesh;

/// Words of cells per batch of a thread.
const WORDS: usize = 1 << 6;
/// Nodes per batch of a thread.
const NODES: usize = 1 << 14;
/// A node of a cell that touches an owned one.
pub(super) const HERE: u8 = 1;
/// A node of a cell that touches an owned node and one of another rank: that rank copies it, unless it owns
/// it.
pub(super) const COPIED: u8 = HERE | 2;

/// The cells with a node that the rank owns, and the marks of all nodes.
pub(super) fn touched(mesh: &Mesh, owners: &[u32], rank: u32) -> (Subset, Vec<AtomicU8>) {
    let marks: Vec<AtomicU8> = (0..mesh.n_nodes()).into_par_iter().map(|_| AtomicU8::new(0)).collect();
    let words = match mesh.kind.n_nodes() {
        2 => touched_words::<2>(mesh, owners, rank, &marks),
        3 => touched_words::<3>(mesh, owners, rank, &marks),
        4 => touched_words::<4>(mesh, owners, rank, &marks),
        _ => touched_words::<8>(mesh, owners, rank, &marks),
    };
    (Subset::new(words), marks)
}

/// The bits of [touched] cells of `N` nodes.
fn touched_words<const N: usize>(mesh: &Mesh, owners: &[u32], rank: u32, marks: &[AtomicU8]) -> Vec<u64> {
    let is_touched = |nodes: &[u32; N]| {
        let n_owned: usize = nodes.iter().map(|&node| usize::from(owners[node as usize] == rank)).sum();
        if n_owned > 0 {
            let mark = if n_owned < N { COPIED } else { HERE };
            nodes.iter().for_each(|&node| add_mark(&marks[node as usize], mark));
        }
        n_owned > 0
    };
    let word = |cells: &[[u32; N]]| {
        let bits = cells.iter().map(|nodes| u64::from(is_touched(nodes)));
        bits.zip(0..).fold(0, |word, (bit, place)| word | bit << place)
    };
    mesh.cells.as_chunks().0.par_chunks(BITS).with_min_len(WORDS).map(word).collect()
}

/// Most marks are there already, and to read one costs less than to write it.
fn add_mark(marks: &AtomicU8, mark: u8) {
    if marks.load(Relaxed) & mark != mark {
        marks.fetch_or(mark, Relaxed);
    }
}

/// The nodes of a part in its order.
pub(super) struct Numbers {
    /// Number of each node in the whole mesh.
    pub(super) nodes: Vec<u32>,
    /// Number of owned nodes, which come first.
    pub(super) n_owned: usize,
    /// Local number of each global node.
    pub(super) local: Vec<AtomicU32>,
}

impl Numbers {
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
        nodes[n_owned..].par_sort_unstable_by_key(|&node| (owners[node as usize], node));
        let absent = (0..marks.len()).into_par_iter().map(|_| AtomicU32::new(ABSENT));
        let local: Vec<AtomicU32> = absent.collect();
        nodes.par_iter().zip(0..nodes.len() as u32).with_min_len(NODES).for_each(|(&node, number)| {
            local[node as usize].store(number, Relaxed);
        });
        Self { nodes, n_owned, local }
    }
}
