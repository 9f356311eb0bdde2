//! Graphs of nodes, and their partitions.

use femtile_device::parallel;

use crate::AmgError;

/// A symmetric graph; a node may be listed among its own neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    pub(crate) offsets: Vec<usize>,
    pub(crate) neighbours: Vec<u32>,
}

impl Graph {
    /// Returns the graph of a mesh: nodes of a cell are neighbours. `cells` has `n_corners` nodes for each cell.
    ///
    /// # Cost
    /// Each node's list is sorted: about the work of assembling a pattern.
    /// # Errors
    /// [`AmgError::Setting`] for an incomplete cell or a node out of range.
    pub fn from_cells(n_nodes: usize, n_corners: usize, cells: &[u32]) -> Result<Self, AmgError> {
        let wrong = |message: String| Err(AmgError::Setting { field: "graph", message });
        if n_corners == 0 || !cells.len().is_multiple_of(n_corners) {
            return wrong(format!("the length {} of `cells` is not a multiple of {n_corners}", cells.len()));
        }
        if let Some(at) = cells.iter().position(|&node| node as usize >= n_nodes) {
            let (cell, node) = (at / n_corners, cells[at]);
            return wrong(format!(
                "cell {cell} names node {node}, but there are {n_nodes} nodes, counted from 0"
            ));
        }
        let corners = Aggregates { n: n_nodes, of_node: cells.to_vec() }.members();
        let of_node = |node: usize| {
            let around = corners.of(node).iter().map(|&corner| corner as usize / n_corners * n_corners);
            let mut others: Vec<u32> =
                around.flat_map(|first| &cells[first..first + n_corners]).copied().collect();
            others.sort_unstable();
            others.dedup();
            others.retain(|&other| other as usize != node);
            others
        };
        let lists = parallel::map(n_nodes, 256, of_node);
        let mut offsets = Vec::with_capacity(n_nodes + 1);
        offsets.push(0);
        offsets.extend(lists.iter().scan(0, |end, list| {
            *end += list.len();
            Some(*end)
        }));
        Ok(Self { offsets, neighbours: lists.concat() })
    }

    /// Number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The neighbours of a node.
    #[inline(always)]
    pub(crate) fn of(&self, node: usize) -> &[u32] {
        &self.neighbours[self.offsets[node]..self.offsets[node + 1]]
    }

    /// The graph without connections of nodes to themselves.
    pub(crate) fn without_loops(&self) -> Self {
        let mut kept = Self { offsets: vec![0], neighbours: Vec::with_capacity(self.neighbours.len()) };
        for node in 0..self.n_nodes() {
            kept.neighbours.extend(self.of(node).iter().filter(|&&other| other as usize != node));
            kept.offsets.push(kept.neighbours.len());
        }
        kept
    }

    /// The graph without the connections of some nodes.
    pub(crate) fn without(&self, is_alone: impl Fn(usize) -> bool + Sync) -> Self {
        let alone = parallel::map(self.n_nodes(), 256, is_alone);
        if !alone.contains(&true) {
            return self.clone();
        }
        let mut kept = Self { offsets: vec![0], neighbours: Vec::with_capacity(self.neighbours.len()) };
        for node in 0..self.n_nodes() {
            let others = self.of(node).iter().filter(|&&other| !alone[node] && !alone[other as usize]);
            kept.neighbours.extend(others);
            kept.offsets.push(kept.neighbours.len());
        }
        kept
    }

    /// Returns whether a node has a neighbour besides itself.
    pub(crate) fn is_connected(&self, node: usize) -> bool {
        self.of(node).iter().any(|&other| other as usize != node)
    }
}

/// The average number of neighbours from which on a root with its neighbours is a large enough aggregate.
const MANY_NEIGHBOURS: usize = 9;

/// Returns the distance of roots of aggregates: more than two, `[fu2014]`, section 5.2.1; more than three if
/// aggregates would be small otherwise.
pub(crate) fn distance(n_neighbours: usize, n_nodes: usize) -> usize {
    if n_neighbours < MANY_NEIGHBOURS * n_nodes { 3 } else { 2 }
}

/// The number of no aggregate.
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
