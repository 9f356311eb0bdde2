//! Patches: groups of aggregates, each with so few rows that its block of the matrix is solved in fast memory.

mod double;
mod exchange;
#[cfg(test)]
mod tests;
mod units;

use crate::setup::aggregate::aggregate;
use crate::setup::graph::{Aggregates, Graph, NONE};
use crate::setup::independent_set::Visit;
pub use double::DoublePartition;
pub(crate) use exchange::ROUNDS;
use exchange::exchange;
use units::Units;

/// Rows of a patch at most.
pub(crate) const MOST_ROWS: u32 = 400;
/// Patches of fewer rows are dealt out to others.
pub(crate) const LEAST_ROWS: u32 = 100;
/// The distance of roots of patches, in connections.
pub(crate) const MOST_DISTANCE: usize = 4;

/// Nodes ordered by patch, and within a patch by aggregate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Patches {
    /// The node at each place.
    pub nodes: Vec<u32>,
    /// The first row of each patch in that order, and the end.
    pub starts: Vec<u32>,
}

impl Patches {
    /// Groups aggregates of nodes of `block` rows to patches of at most [`MOST_ROWS`] rows, around a maximal
    /// independent set of the graph of aggregates.
    ///
    /// An aggregate is cut only if it has more rows than a patch may have. Aggregates without neighbours and
    /// nodes in no aggregate are gathered in the order of their numbers. The result does not depend on the
    /// number of threads.
    ///
    /// # Source
    /// `[fu2014]`, section 5.2.1. Differs: roots are further apart if nodes have few neighbours; a patch that
    /// is too heavy after some rounds of exchange is cut.
    pub fn new(graph: &Graph, aggregates: &Aggregates, block: usize) -> Self {
        Self::around(graph, aggregates, block, Visit::ByNumber)
    }

    /// Groups aggregates around roots visited in another order.
    fn around(graph: &Graph, aggregates: &Aggregates, block: usize, visit: Visit) -> Self {
        let units = Units::new(graph, aggregates, block);
        let mut parts = around_roots(&units, visit);
        exchange(&units.graph, &units.weights, &mut parts);
        let first_node = |unit| units.nodes_of(unit)[0];
        let (patches, starts) = in_order(&units.weights, first_node, &parts, &units.graph);
        let nodes = patches.iter().flatten().flat_map(|&unit| units.nodes_of(unit)).copied().collect();
        Self { starts, nodes }
    }

    /// Groups nodes without connections in the order of their numbers.
    pub fn in_order(n_nodes: usize, block: usize) -> Self {
        let graph = Graph { offsets: vec![0; n_nodes + 1], neighbours: Vec::new() };
        Self::new(&graph, &Aggregates { n: 0, of_node: vec![NONE; n_nodes] }, block)
    }

    /// The row at each place, for nodes of `block` rows.
    pub fn rows(&self, block: usize) -> Vec<u32> {
        let of_node = |&node: &u32| (0..block as u32).map(move |i| block as u32 * node + i);
        self.nodes.iter().flat_map(of_node).collect()
    }
}

/// The units of each patch, patches in the order of their first nodes, and the first row of each patch with the end.
pub(crate) fn in_order(
    weights: &[u32],
    first_node: impl Fn(u32) -> u32,
    parts: &Aggregates,
    graph: &Graph,
) -> (Vec<Vec<u32>>, Vec<u32>) {
    let mut patches = cut((weights, graph), parts);
    patches.extend(gathered(weights, parts));
    patches.sort_unstable_by_key(|patch| first_node(patch[0]));
    let rows = |patch: &Vec<u32>| patch.iter().map(|&unit| weights[unit as usize]).sum::<u32>();
    let ends = patches.iter().scan(0, |end, patch| {
        *end += rows(patch);
        Some(*end)
    });
    let starts = std::iter::once(0).chain(ends).collect();
    (patches, starts)
}

/// Returns units around roots that are more than one connection apart, or more if parts would be small on
/// average.
fn around_roots(units: &Units, visit: Visit) -> Aggregates {
    let weight = |unit: usize| units.weights[unit];
    let mut parts = aggregate(&units.graph, weight, 1, LEAST_ROWS, visit);
    for k in 2..=MOST_DISTANCE {
        let held: u32 = parts.weights(weight).iter().sum();
        if held >= parts.n as u32 * LEAST_ROWS {
            break;
        }
        parts = aggregate(&units.graph, weight, k, LEAST_ROWS, visit);
    }
    parts
}

/// Returns the units of each part. A part that is too heavy gives several patches: pieces of a breadth-first
/// walk through the graph. The graph is not read if no part is too heavy.
fn cut((of_unit, graph): (&[u32], &Graph), parts: &Aggregates) -> Vec<Vec<u32>> {
    let (members, weights) = (parts.members(), parts.weights(|unit| of_unit[unit]));
    let mut is_seen = vec![false; of_unit.len()];
    let mut patches = Vec::with_capacity(parts.n);
    for (part, &weight) in weights.iter().enumerate() {
        if weight <= MOST_ROWS {
            patches.push(members.of(part).to_vec());
        } else {
            let even = weight.div_ceil(weight.div_ceil(MOST_ROWS));
            patches.extend(filled(of_unit, walk(graph, parts, members.of(part), &mut is_seen), even));
        }
    }
    patches
}

/// The members of a part, neighbours near each other.
fn walk(graph: &Graph, parts: &Aggregates, members: &[u32], is_seen: &mut [bool]) -> Vec<u32> {
    let part = parts.of_node[members[0] as usize];
    let mut order = Vec::with_capacity(members.len());
    let mut next = 0;
    for &first in members {
        if !std::mem::replace(&mut is_seen[first as usize], true) {
            order.push(first);
        }
        while next < order.len() {
            for &other in graph.of(order[next] as usize) {
                let is_member = parts.of_node[other as usize] == part;
                if is_member && !std::mem::replace(&mut is_seen[other as usize], true) {
                    order.push(other);
                }
            }
            next += 1;
        }
    }
    order
}

/// Groups the units in no part in the order of their numbers.
fn gathered(weights: &[u32], parts: &Aggregates) -> Vec<Vec<u32>> {
    let alone = (0..weights.len() as u32).filter(|&unit| parts.of_node[unit as usize] == NONE);
    filled(weights, alone.collect(), MOST_ROWS)
}

/// Stretches of units: each ends before it has more than [`MOST_ROWS`], and once it has `enough`.
fn filled(weights: &[u32], order: Vec<u32>, enough: u32) -> Vec<Vec<u32>> {
    let (mut patches, mut own, mut weight) = (Vec::new(), Vec::new(), 0);
    for unit in order {
        let more = weights[unit as usize];
        if weight >= enough || weight + more > MOST_ROWS {
            patches.push(std::mem::take(&mut own));
            weight = 0;
        }
        own.push(unit);
        weight += more;
    }
    if !own.is_empty() {
        patches.push(own);
    }
    for patch in &mut patches {
        patch.sort_unstable();
    }
    patches
}
