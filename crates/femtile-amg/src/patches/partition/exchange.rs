//! Exchange of units between patches, which evens their sizes.

use super::MOST_ROWS;
use crate::setup::graph::{Aggregates, Graph, NONE};

/// The largest number of rounds; patches that are still too heavy then are cut.
pub(crate) const ROUNDS: usize = 32;

/// A unit that would leave its patch.
#[derive(Debug, Clone, Copy)]
struct Move {
    unit: usize,
    to: u32,
    /// Whether the other patch can take it.
    fits: bool,
    /// Neighbours in the other patch less those in its own.
    gain: i64,
}

/// In rounds, each patch of more than [`MOST_ROWS`] gives up one unit: preferably one that fits into its new
/// patch, then one with many neighbours there and few at home. The other patch stays the lighter of the two
/// and receives one unit per round, so that all patches decide by the weights before the round. Ends when no
/// patch is too heavy, or nothing moves.
///
/// # Source
/// `[fu2014]`, section 5.2.1, which does not define the desirable patch.
pub(super) fn exchange(graph: &Graph, weights: &[u32], parts: &mut Aggregates) {
    let mut sizes = parts.weights(|unit| weights[unit]);
    for _ in 0..ROUNDS {
        if sizes.iter().all(|&size| size <= MOST_ROWS) {
            return;
        }
        let mut best: Vec<Option<Move>> = vec![None; parts.n];
        for unit in 0..weights.len() {
            let own = parts.of_node[unit];
            if own == NONE || sizes[own as usize] <= MOST_ROWS {
                continue;
            }
            let found = most_desirable(graph, weights, parts, &sizes, unit);
            let known = &mut best[own as usize];
            if found.is_some_and(|found| known.is_none_or(|known| found.key() > known.key())) {
                *known = found;
            }
        }
        let mut taken: Vec<Option<Move>> = vec![None; parts.n];
        for found in best.into_iter().flatten() {
            let known = &mut taken[found.to as usize];
            if known.is_none_or(|known| found.key() > known.key()) {
                *known = Some(found);
            }
        }
        let mut is_moved = false;
        for Move { unit, to, .. } in taken.into_iter().flatten() {
            sizes[parts.of_node[unit] as usize] -= weights[unit];
            sizes[to as usize] += weights[unit];
            parts.of_node[unit] = to;
            is_moved = true;
        }
        if !is_moved {
            return;
        }
    }
}

impl Move {
    fn key(&self) -> (bool, i64) {
        (self.fits, self.gain)
    }
}

/// Returns the patch that a unit prefers, among patches that would have fewer rows with it than its own patch
/// has now.
fn most_desirable(
    graph: &Graph,
    weights: &[u32],
    parts: &Aggregates,
    sizes: &[u32],
    unit: usize,
) -> Option<Move> {
    let own = parts.of_node[unit];
    let mut near: Vec<u32> = graph.of(unit).iter().map(|&other| parts.of_node[other as usize]).collect();
    near.sort_unstable();
    let at_home = near.iter().filter(|part| **part == own).count() as i64;
    let mut best: Option<Move> = None;
    for group in near.chunk_by(|a, b| a == b).filter(|group| group[0] != own) {
        let size = sizes[group[0] as usize] + weights[unit];
        let (fits, gain) = (size <= MOST_ROWS, group.len() as i64 - at_home);
        let found = Move { unit, to: group[0], fits, gain };
        if size < sizes[own as usize] && best.is_none_or(|best| found.key() > best.key()) {
            best = Some(found);
        }
    }
    best
}
