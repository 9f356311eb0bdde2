//! Maximal independent sets of distance k.

use super::graph::Graph;

/// Returns a maximal set of nodes no two of which are joined by a path of `k` edges or fewer, without isolated nodes, by
/// visiting nodes in the order of `visit`.
///
/// # Cost
/// For k = 2 each list of neighbours is read at most twice; in general those of nodes nearer than k to a root, once for
/// each such root.
/// # Source
/// `[fu2014]`, section 5.2.1. Differs: greedy, which equals their parallel rounds with the order as priorities.
pub(crate) fn independent_set(graph: &Graph, k: usize, visit: Visit) -> Vec<u32> {
    let n = graph.n_nodes();
    let (mut is_near, mut seen_from) = (vec![false; n], vec![0_u32; n]);
    let mut roots = Vec::new();
    let (mut ring, mut next) = (Vec::new(), Vec::new());
    for node in visit.order(n) {
        if is_near[node] || !graph.is_connected(node) {
            continue;
        }
        roots.push(node as u32);
        let number = roots.len() as u32;
        is_near[node] = true;
        seen_from[node] = number;
        ring.clear();
        ring.push(node as u32);
        for distance in 1..=k {
            next.clear();
            for &to in ring.iter().flat_map(|&from: &u32| graph.of(from as usize)) {
                is_near[to as usize] = true;
                // The outermost ring is not looked at again.
                if distance < k && seen_from[to as usize] != number {
                    seen_from[to as usize] = number;
                    next.push(to);
                }
            }
            std::mem::swap(&mut ring, &mut next);
        }
    }
    roots.sort_unstable();
    roots
}

/// The order in which nodes may become roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visit {
    /// By ascending numbers: roots are as close as allowed, and groups small and even.
    ByNumber,
    /// In pseudorandom order, so that few parallel rounds find all roots.
    InRounds,
}

impl Visit {
    fn order(self, n: usize) -> Vec<usize> {
        let mut nodes: Vec<usize> = (0..n).collect();
        if self == Self::InRounds {
            nodes.sort_unstable_by_key(|&node| std::cmp::Reverse((mixed(node as u64) >> 34, node)));
        }
        nodes
    }

    /// Returns the most rounds in which nodes join groups, where all are within `n` connections of one.
    pub fn rounds(self, n: usize) -> usize {
        if self == Self::InRounds { n } else { usize::MAX }
    }
}

/// Returns 64 pseudorandom bits for a number; `mixed` of `lanes.cuh`.
fn mixed(i: u64) -> u64 {
    let bits = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
