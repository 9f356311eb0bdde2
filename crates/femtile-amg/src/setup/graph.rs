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
    /// The weight of each part, that of its nodes together.
    pub fn weights(&self, of_node: impl Fn(usize) -> u32) -> Vec<u32> {
        let mut weights = vec![0_u32; self.n];
        for (node, &part) in self.of_node.iter().enumerate() {
            if part != NONE {
                weights[part as usize] += of_node(node);
            }
        }
        weights
    }

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
