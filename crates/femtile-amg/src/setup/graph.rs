//! Which nodes are neighbours.

/// A symmetric graph; a node may be listed among its own neighbours.
#[derive(Debug, Clone)]
pub(crate) struct Graph {
    pub offsets: Vec<usize>,
    pub neighbours: Vec<u32>,
}

impl Graph {
    /// Number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The neighbours of a node.
    #[inline(always)]
    pub fn of(&self, node: usize) -> &[u32] {
        &self.neighbours[self.offsets[node]..self.offsets[node + 1]]
    }

    /// Whether a node has a neighbour besides itself.
    pub fn is_connected(&self, node: usize) -> bool {
        self.of(node).iter().any(|&other| other as usize != node)
    }
}

/// Neighbours of a node, on average, from which on aggregates are a root with its neighbours.
const MANY_NEIGHBOURS: usize = 9;

/// Roots of aggregates are at a distance of more than two from each other, `[fu2014]`, section 5.2.1; of more than three
/// where aggregates would be small otherwise.
pub(crate) fn distance(n_neighbours: usize, n_nodes: usize) -> usize {
    if n_neighbours < MANY_NEIGHBOURS * n_nodes { 3 } else { 2 }
}

/// Stands for no aggregate.
pub(crate) const NONE: u32 = u32::MAX;

/// A partition of nodes, some of which may belong to no part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Aggregates {
    /// Number of parts.
    pub n: usize,
    /// The part of each node, or [`NONE`].
    pub of_node: Vec<u32>,
}

impl Aggregates {
    /// The nodes of each part, ascending.
    pub fn members(&self) -> Graph {
        let mut offsets = vec![0; self.n + 1];
        let held = || self.of_node.iter().enumerate().filter(|(_, part)| **part != NONE);
        held().for_each(|(_, &part)| offsets[part as usize + 1] += 1);
        for i in 0..self.n {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut neighbours = vec![0; offsets[self.n]];
        held().for_each(|(node, &part)| {
            neighbours[next[part as usize]] = node as u32;
            next[part as usize] += 1;
        });
        Graph { offsets, neighbours }
    }
}
