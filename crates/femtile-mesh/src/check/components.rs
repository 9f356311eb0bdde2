use crate::Mesh;
use crate::interrupt::Interrupt;

/// Groups that are joined before the next question whether to go on.
const GROUPS_PER_BLOCK: usize = 1 << 20;

/// The connected parts of a mesh; cells are connected when they share a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Components {
    /// Number of parts.
    pub count: usize,
    /// Part of each node, numbered by their smallest nodes; `u32::MAX` where no cell uses the node.
    pub of_node: Vec<u32>,
}

/// Finds the connected parts of a mesh.
///
/// # Cost
/// One pass over the cells, nearly linear; four bytes a node.
pub fn components(mesh: &Mesh) -> Components {
    connect(mesh.n_nodes(), mesh.kind.n_nodes(), &mesh.cells, Interrupt::NEVER)
}

/// Parts of `n_nodes` nodes that groups of `n` indices join; after an interrupt groups are missing.
pub(super) fn connect(n_nodes: usize, n: usize, groups: &[u32], interrupt: Interrupt<'_>) -> Components {
    let mut parent = vec![u32::MAX; n_nodes];
    let blocks = groups.chunks(n * GROUPS_PER_BLOCK).take_while(|_| !interrupt.is_set());
    for group in blocks.flat_map(|block| block.chunks_exact(n)) {
        let mut root = find(&mut parent, group[0]);
        for &node in &group[1..] {
            let other = find(&mut parent, node);
            let (low, high) = (root.min(other), root.max(other));
            parent[high as usize] = low;
            root = low;
        }
    }
    // A parent is never larger than its child, so its part is already known.
    let mut count = 0;
    for node in 0..n_nodes {
        parent[node] = match parent[node] {
            u32::MAX => u32::MAX,
            own if own as usize == node => {
                count += 1;
                count - 1
            }
            other => parent[other as usize],
        };
    }
    Components { count: count as usize, of_node: parent }
}

/// Root of a node, which becomes its own root when it had none; halves the path on the way.
fn find(parent: &mut [u32], mut node: u32) -> u32 {
    if parent[node as usize] == u32::MAX {
        parent[node as usize] = node;
    }
    while parent[node as usize] != node {
        let next = parent[parent[node as usize] as usize];
        parent[node as usize] = next;
        node = next;
    }
    node
}
