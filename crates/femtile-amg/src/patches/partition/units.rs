//! The units of patches: aggregates, pieces of aggregates that are too large, and nodes in no aggregate.

use femtile_device::parallel;

use super::MOST_ROWS;
use crate::setup::graph::{Aggregates, Graph, NONE};

/// Groups of nodes that no patch cuts, and the graph that they make.
pub(super) struct Units {
    /// The nodes of all units, one unit after another.
    nodes: Vec<u32>,
    /// The first node of each unit, and the end.
    starts: Vec<usize>,
    /// Rows of each unit, at most [`MOST_ROWS`].
    pub weights: Vec<u32>,
    /// The graph of units: two units are neighbours if nodes of them are.
    pub graph: Graph,
}

impl Units {
    /// The units of a graph of nodes of `block` rows, at most [`MOST_ROWS`].
    pub fn new(graph: &Graph, aggregates: &Aggregates, block: usize) -> Self {
        let members = aggregates.members();
        let most = (MOST_ROWS as usize / block).max(1);
        let (mut nodes, mut starts) = (Vec::with_capacity(graph.n_nodes()), vec![0]);
        let mut add = |unit: &[u32]| {
            nodes.extend_from_slice(unit);
            starts.push(nodes.len());
        };
        (0..aggregates.n).for_each(|part| members.of(part).chunks(most).for_each(&mut add));
        let alone = (0..graph.n_nodes()).filter(|&node| aggregates.of_node[node] == NONE);
        alone.for_each(|node| add(&[node as u32]));
        let weights = starts.windows(2).map(|ends| (block * (ends[1] - ends[0])) as u32).collect();
        let graph = induced(graph, &nodes, &starts);
        Self { nodes, starts, weights, graph }
    }

    /// The nodes of a unit, ascending.
    pub fn nodes_of(&self, unit: u32) -> &[u32] {
        &self.nodes[self.starts[unit as usize]..self.starts[unit as usize + 1]]
    }
}

/// The graph of units; neighbours ascend.
fn induced(graph: &Graph, nodes: &[u32], starts: &[usize]) -> Graph {
    let mut unit_of = vec![0_u32; nodes.len()];
    for (unit, ends) in starts.windows(2).enumerate() {
        nodes[ends[0]..ends[1]].iter().for_each(|&node| unit_of[node as usize] = unit as u32);
    }
    let neighbours_of = |unit: usize| {
        let near = nodes[starts[unit]..starts[unit + 1]].iter().flat_map(|&node| graph.of(node as usize));
        let mut others: Vec<u32> = near.map(|&node| unit_of[node as usize]).collect();
        others.sort_unstable();
        others.dedup();
        others.retain(|&other| other as usize != unit);
        others
    };
    let lists = parallel::map(starts.len() - 1, 64, neighbours_of);
    let ends = lists.iter().scan(0, |end, list| {
        *end += list.len();
        Some(*end)
    });
    Graph { offsets: std::iter::once(0).chain(ends).collect(), neighbours: lists.concat() }
}
