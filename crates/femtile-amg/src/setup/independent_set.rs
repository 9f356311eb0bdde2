//! Maximal independent sets of distance k.

use femtile_device::parallel;

use super::graph::Graph;

/// Returns a maximal set of nodes without isolated nodes. No two of them are joined by a path of `k` edges or
/// fewer. Nodes are visited in the order of `visit`. [`Visit::Filling`] then adds nodes in gaps of that set,
/// at least `k` edges apart.
///
/// # Cost
/// For k = 2 each list of neighbours is read at most twice. In general, a list is read once per root at a
/// distance below k. Gaps need another set for k − 1, and k passes over the graph.
/// # Source
/// `[fu2014]`, section 5.2.1. Differs: greedy, which equals their parallel rounds with the order as priorities; gaps are
/// filled.
pub(crate) fn independent_set(graph: &Graph, k: usize, visit: Visit) -> Vec<u32> {
    let roots = greedy(graph, k, visit.order(graph.n_nodes()));
    if visit != Visit::Filling || k < 2 {
        return roots;
    }
    let in_gap = gaps(graph, k, &roots);
    let first = roots.iter().map(|&root| root as usize).collect::<Vec<_>>();
    let added = visit.order(graph.n_nodes()).into_iter().filter(|&node| in_gap[node]);
    greedy(graph, k - 1, first.into_iter().chain(added))
}

/// Visits nodes in an order; each becomes a root unless a path of `k` edges or fewer joins it to one. Roots ascend.
fn greedy(graph: &Graph, k: usize, order: impl IntoIterator<Item = usize>) -> Vec<u32> {
    let n = graph.n_nodes();
    let (mut is_near, mut seen_from) = (vec![false; n], vec![0_u32; n]);
    let mut roots = Vec::new();
    let (mut ring, mut next) = (Vec::new(), Vec::new());
    for node in order {
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

/// The least share of walks that end free, as a fraction: with more, groups are larger and solves take more iterations;
/// with less, coarser levels take more memory.
pub(crate) const LEAST_FREE: [u32; 2] = [2, 3];

/// Marks nodes of which enough walks of k − 1 edges end at nodes that are free: no roots, nor neighbours of roots.
fn gaps(graph: &Graph, k: usize, roots: &[u32]) -> Vec<bool> {
    let mut is_free = vec![true; graph.n_nodes()];
    for &root in roots {
        is_free[root as usize] = false;
        graph.of(root as usize).iter().for_each(|&node| is_free[node as usize] = false);
    }
    // Of walks that start at a node, those that end free, and all.
    let mut walks: Vec<[u64; 2]> = is_free.into_iter().map(|is_free| [u64::from(is_free), 1]).collect();
    for _ in 1..k {
        walks = parallel::map(graph.n_nodes(), 256, |node| {
            let others = graph.of(node).iter().map(|&other| walks[other as usize]);
            others.fold([0; 2], |sum, other| [sum[0] + other[0], sum[1] + other[1]])
        });
    }
    let [share, of] = LEAST_FREE.map(u64::from);
    walks.into_iter().map(|[free, all]| of * free >= share * all).collect()
}

/// The order in which nodes may become roots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visit {
    /// By ascending numbers: roots are as close as allowed, and groups small and even.
    ByNumber,
    /// In pseudorandom order, so that few parallel rounds find all roots.
    InRounds,
    /// As [`Visit::InRounds`], then once more in the gaps that are left, so that groups are about as small as by numbers.
    Filling,
}

impl Visit {
    fn order(self, n: usize) -> Vec<usize> {
        let mut nodes: Vec<usize> = (0..n).collect();
        if self != Self::ByNumber {
            nodes.sort_unstable_by_key(|&node| std::cmp::Reverse((mixed(node as u64) >> 34, node)));
        }
        nodes
    }

    /// Returns the largest number of rounds in which nodes join groups, if all nodes are within `n`
    /// connections of a root.
    pub fn rounds(self, n: usize) -> usize {
        if self == Self::ByNumber { usize::MAX } else { n }
    }
}

/// Returns 64 pseudorandom bits for a number; `mixed` of `lanes.cuh`.
fn mixed(i: u64) -> u64 {
    let bits = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
