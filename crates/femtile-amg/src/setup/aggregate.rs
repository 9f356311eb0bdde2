//! Aggregates: small connected groups of nodes, each of which becomes a node of the next level.

use femtile_device::parallel;

use super::graph::{Aggregates, Graph, NONE};
use super::independent_set::{Visit, independent_set};

/// Groups the nodes around a maximal independent set of distance `k`: neighbours of a root first, then, in rounds,
/// each node joins the group with most of its neighbours. Groups below the weight `least` are dissolved, and their nodes
/// join other groups. Nodes without neighbours belong to no group.
///
/// The result does not depend on the number of threads.
///
/// # Source
/// `[fu2014]`, section 5.2.1, steps 1–5. Differs: if groups are small on average, `least` is half of the
/// average, so that chains and small graphs keep theirs. A group that no other can take over stays.
pub(crate) fn aggregate(
    graph: &Graph,
    weight: impl Fn(usize) -> u32,
    k: usize,
    least: u32,
    visit: Visit,
) -> Aggregates {
    let mut parts = around(graph, &independent_set(graph, k, visit));
    allocate(graph, &mut parts, visit.rounds(k));
    let weights = parts.weights(weight);
    remove_small(graph, &weights, least, visit.rounds(k + 1), &mut parts);
    parts
}

/// Returns groups of a root and those of its neighbours that are neighbours of no other root.
fn around(graph: &Graph, roots: &[u32]) -> Aggregates {
    let mut of_node = vec![NONE; graph.n_nodes()];
    for (part, &root) in roots.iter().enumerate() {
        of_node[root as usize] = part as u32;
    }
    let is_root: Vec<bool> = of_node.iter().map(|&part| part != NONE).collect();
    for (part, &root) in roots.iter().enumerate() {
        for &node in graph.of(root as usize) {
            if !is_root[node as usize] {
                of_node[node as usize] = if of_node[node as usize] == NONE { part as u32 } else { SHARED };
            }
        }
    }
    of_node.iter_mut().filter(|part| **part == SHARED).for_each(|part| *part = NONE);
    Aggregates { n: roots.len(), of_node }
}

/// Marks the neighbours of several roots.
const SHARED: u32 = NONE - 1;

/// Assigns nodes without a group to neighbouring groups in a limited number of rounds, each based on the groups before it.
fn allocate(graph: &Graph, parts: &mut Aggregates, mut rounds: usize) {
    let alone = |node: &u32| parts.of_node[*node as usize] == NONE;
    let mut open: Vec<u32> = (0..graph.n_nodes() as u32).filter(alone).collect();
    while !open.is_empty() && rounds > 0 {
        rounds -= 1;
        let of_node = &parts.of_node;
        let choices = parallel::map_with(open.len(), 256, Vec::new, |counts, i| {
            counts.clear();
            counts.extend(graph.of(open[i] as usize).iter().map(|&other| of_node[other as usize]));
            most_frequent(counts)
        });
        let n_before = open.len();
        open.iter().zip(&choices).for_each(|(&node, &part)| parts.of_node[node as usize] = part);
        open.retain(|&node| parts.of_node[node as usize] == NONE);
        if open.len() == n_before {
            break;
        }
    }
}

/// Returns the most frequent group of a list, the lowest of several; [`NONE`] if there is none.
fn most_frequent(parts: &mut [u32]) -> u32 {
    parts.sort_unstable();
    let groups = parts.chunk_by(|a, b| a == b).filter(|group| group[0] != NONE);
    groups.rev().max_by_key(|group| group.len()).map_or(NONE, |group| group[0])
}

/// Dissolves groups below a weight, except those without a neighbouring group.
fn remove_small(graph: &Graph, sizes: &[u32], least: u32, rounds: usize, parts: &mut Aggregates) {
    let average = sizes.iter().sum::<u32>() / parts.n.max(1) as u32;
    let least = least.min(average / 2);
    if sizes.iter().all(|&size| size >= least) {
        return;
    }
    let before = parts.of_node.clone();
    let is_small = |part: u32| part != NONE && sizes[part as usize] < least;
    parts.of_node.iter_mut().filter(|part| is_small(**part)).for_each(|part| *part = NONE);
    allocate(graph, parts, rounds);
    for (part, &old) in parts.of_node.iter_mut().zip(&before) {
        if *part == NONE {
            *part = old;
        }
    }
    renumber(parts);
}

/// Renumbers groups without gaps.
fn renumber(parts: &mut Aggregates) {
    let mut number = vec![NONE; parts.n];
    parts.of_node.iter().filter(|part| **part != NONE).for_each(|&part| number[part as usize] = 0);
    let mut n = 0;
    number.iter_mut().filter(|number| **number == 0).for_each(|number| {
        *number = n;
        n += 1;
    });
    parts.of_node.iter_mut().filter(|part| **part != NONE).for_each(|part| *part = number[*part as usize]);
    parts.n = n as usize;
}
