use super::Patches;
use crate::setup::aggregate::aggregate;
use crate::setup::graph::{Graph, distance};
use crate::setup::independent_set::Visit;

/// The two partitions that a smoother by patches needs: nodes in aggregates, and aggregates in patches of at most 400 nodes.
///
/// # Source
/// `[fu2014]`, section 5.2.1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoublePartition {
    /// Number of aggregates.
    pub n_aggregates: usize,
    /// The aggregate of each node; all bits are set for a node in no aggregate.
    pub of_node: Vec<u32>,
    /// The nodes ordered by patch, and within a patch by aggregate.
    pub nodes: Vec<u32>,
    /// The first place of each patch, and the end.
    pub starts: Vec<u32>,
}

impl DoublePartition {
    /// Partitions a graph around roots that are found in rounds, on the host; aggregates of fewer nodes than `least` are
    /// dealt out.
    pub(crate) fn of(graph: &Graph, least: u32) -> Self {
        let graph = graph.without_loops();
        let k = distance(graph.neighbours.len(), graph.n_nodes());
        let aggregates = aggregate(&graph, |_| 1, k, least, Visit::Filling);
        let Patches { nodes, starts } = Patches::around(&graph, &aggregates, 1, Visit::InRounds);
        Self { n_aggregates: aggregates.n, of_node: aggregates.of_node, nodes, starts }
    }
}
