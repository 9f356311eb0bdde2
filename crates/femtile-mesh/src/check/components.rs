use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use femtile_device::parallel;

use crate::Mesh;
use crate::interrupt::Interrupt;

/// Groups that a thread joins before the next question whether to continue.
const GROUPS_PER_BLOCK: usize = 1 << 13;

/// The connected parts of a mesh; cells are connected when they share a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Components {
    /// Number of parts.
    pub count: usize,
    /// Part of each node, numbered by their smallest nodes; `u32::MAX` if no cell uses the node.
    pub of_node: Vec<u32>,
}

/// Finds the connected parts of a mesh.
///
/// # Cost
/// One pass over the cells and two over the nodes by all threads, nearly linear; eight bytes per node.
pub fn components(mesh: &Mesh) -> Components {
    let parents = parents(mesh.n_nodes(), mesh.kind.n_nodes(), &mesh.cells, Interrupt::NEVER);
    let roots = parallel::filter(parents.len(), |node| parents[node].load(Relaxed) == node as u32);
    let part = |mut node: u32| loop {
        match parents[node as usize].load(Relaxed) {
            u32::MAX => return u32::MAX,
            _ if roots.len() == 1 => return 0,
            // Roots ascend, and each is one of the list.
            root if root == node => return roots.partition_point(|&other| other < root) as u32,
            above => node = above,
        }
    };
    let of_node = parallel::map(parents.len(), parallel::CHEAP, |node| part(node as u32));
    Components { count: roots.len(), of_node }
}

/// Number of parts of `n_nodes` nodes that groups of `n` indices join; after an interrupt groups are missing.
pub(super) fn n_parts(n_nodes: usize, n: usize, groups: &[u32], interrupt: Interrupt<'_>) -> usize {
    let parents = parents(n_nodes, n, groups, interrupt);
    let is_root = |node: usize| parents[node].load(Relaxed) as usize == node;
    parallel::sum(n_nodes, parallel::CHEAP, |node| usize::from(is_root(node)))
}

/// Parents of the nodes in trees, one a part; a root is the smallest node of its part.
///
/// Threads join parts at the same time. Only a root gets another parent than an ancestor, by an exchange that
/// fails if it is not a root any more. So trees stay trees, and the parts do not depend on the order.
fn parents(n_nodes: usize, n: usize, groups: &[u32], interrupt: Interrupt<'_>) -> Vec<AtomicU32> {
    let parents = parallel::map(n_nodes, parallel::CHEAP, |_| AtomicU32::new(u32::MAX));
    parallel::map_chunks(groups, n * GROUPS_PER_BLOCK, |_, block| {
        let is_wanted = !interrupt.is_set();
        for group in block.chunks_exact(n).take_while(|_| is_wanted) {
            let mut root = find(&parents, group[0]);
            for &node in &group[1..] {
                root = join(&parents, root, node);
            }
        }
    });
    parents
}

/// Joins the parts of two nodes; returns their root.
fn join(parents: &[AtomicU32], a: u32, b: u32) -> u32 {
    let (mut a, mut b) = (a, find(parents, b));
    while a != b {
        let (low, high) = (a.min(b), a.max(b));
        if parents[high as usize].compare_exchange(high, low, Relaxed, Relaxed).is_ok() {
            return low;
        }
        (a, b) = (low, find(parents, high));
    }
    a
}

/// Root of a node, which becomes its own root when it had none; halves the path on the way.
fn find(parents: &[AtomicU32], mut node: u32) -> u32 {
    let parent = |node: u32| parents[node as usize].load(Relaxed);
    let mut above = parent(node);
    if above == u32::MAX {
        match parents[node as usize].compare_exchange(u32::MAX, node, Relaxed, Relaxed) {
            Ok(_) => return node,
            Err(found) => above = found,
        }
    }
    while above != node {
        let next = parent(above);
        if next == above {
            return above;
        }
        parents[node as usize].store(next, Relaxed);
        node = next;
        above = parent(node);
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CellKind;

    /// Part of each node, by joining all nodes of a part again and again.
    fn reference(n_nodes: usize, cells: &[u32]) -> Components {
        let mut smallest: Vec<u32> = vec![u32::MAX; n_nodes];
        cells.iter().for_each(|&node| smallest[node as usize] = node);
        loop {
            let before = smallest.clone();
            for cell in cells.chunks_exact(2) {
                let low = cell.iter().map(|&node| smallest[node as usize]).min().unwrap();
                cell.iter().for_each(|&node| smallest[node as usize] = low);
            }
            if before == smallest {
                break;
            }
        }
        let roots: Vec<u32> = (0..n_nodes as u32).filter(|&node| smallest[node as usize] == node).collect();
        let part = |low: &u32| roots.binary_search(low).map_or(u32::MAX, |part| part as u32);
        Components { count: roots.len(), of_node: smallest.iter().map(part).collect() }
    }

    #[test]
    fn parts_do_not_depend_on_the_number_of_threads() {
        // Random edges, about as many as nodes divided by two: many parts, some large, and unused nodes.
        let (n_nodes, mut state) = (40_009_u64, 1_u64);
        let mut random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            ((state >> 33) % n_nodes) as u32
        };
        let cells: Vec<u32> = (0..n_nodes / 2 * 2 + 2000).map(|_| random()).collect();
        let points = vec![[0.0; 3]; n_nodes as usize];
        let mesh = Mesh::new(points, CellKind::Segment, cells).unwrap();
        let expected = reference(n_nodes as usize, &mesh.cells);
        assert!(expected.count > 1000 && expected.of_node.contains(&u32::MAX));
        for threads in [1, 2, 3, 8] {
            let pool = femtile_device::Cpu::new(threads).unwrap();
            pool.install(|| {
                assert_eq!(components(&mesh), expected, "{threads}");
                let n = n_parts(mesh.n_nodes(), 2, &mesh.cells, Interrupt::NEVER);
                assert_eq!(n, expected.count, "{threads}");
            });
        }
    }
}
