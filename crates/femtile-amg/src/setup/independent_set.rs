//! Nodes that keep a distance from each other.

use super::graph::Graph;

/// A set of nodes no two of which are joined by a path of `k` edges or fewer, and to which none can be added; nodes
/// without neighbours are left out. Nodes are taken in the order of their numbers.
///
/// # Cost
/// For k = 2 each list of neighbours is read at most twice; in general those of nodes nearer than k to a root, once for
/// each such root.
/// # Source
/// `[fu2014]`, section 5.2.1. Differs: greedy by number, which is what their parallel rounds come to with numbers for
/// priorities.
pub(crate) fn independent_set(graph: &Graph, k: usize) -> Vec<u32> {
    let n = graph.n_nodes();
    let (mut is_near, mut seen_from) = (vec![false; n], vec![0_u32; n]);
    let mut roots = Vec::new();
    let (mut ring, mut next) = (Vec::new(), Vec::new());
    for node in 0..n {
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
    roots
}
