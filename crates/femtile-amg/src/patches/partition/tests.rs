//! Patches hold every node, whole aggregates, and neither too many rows nor too few.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::{MOST_ROWS, Patches};
use crate::setup::aggregate::aggregate;
use crate::setup::graph::{Aggregates, NONE};
use crate::setup::independent_set::Visit;
use crate::setup::rows::RowAccess;
use crate::setup::tests::{grid, laplacian, matrices, strength};

/// Rows of each patch, its nodes, and what [`Patches`] promises.
fn check_patches(patches: &Patches, aggregates: &Aggregates, block: usize) {
    let mut nodes = patches.nodes.clone();
    nodes.sort_unstable();
    assert!(nodes.into_iter().eq(0..aggregates.of_node.len() as u32), "a node is missing or there twice");
    assert_eq!(*patches.starts.last().unwrap() as usize, block * aggregates.of_node.len());
    let sizes = aggregates.weights(|_| block as u32);
    let mut patch_of = vec![NONE; aggregates.n];
    for (patch, ends) in patches.starts.windows(2).enumerate() {
        assert!(ends[1] > ends[0] && ends[1] - ends[0] <= MOST_ROWS);
        assert!(ends.iter().all(|&end| (end as usize).is_multiple_of(block)));
        let inside = &patches.nodes[ends[0] as usize / block..ends[1] as usize / block];
        let parts: Vec<u32> = inside.iter().map(|&node| aggregates.of_node[node as usize]).collect();
        let mut seen = BTreeSet::new();
        for group in parts.chunk_by(|a, b| a == b).filter(|group| group[0] != NONE) {
            assert!(seen.insert(group[0]), "an aggregate is in two stretches of a patch");
            if sizes[group[0] as usize] <= MOST_ROWS {
                assert_eq!(patch_of[group[0] as usize], NONE, "an aggregate is cut");
                patch_of[group[0] as usize] = patch as u32;
            }
        }
    }
}

proptest! {
    #[test]
    fn patches_hold_every_node_once_and_whole_aggregates(
        a in matrices(), k in 1..4_usize, block in prop::sample::select(vec![1, 3, 37, 400]),
    ) {
        let graph = strength(&a).graph;
        let aggregates = aggregate(&graph, |_| 1, k, 3, Visit::ByNumber);
        check_patches(&Patches::new(&graph, &aggregates, block), &aggregates, block);
    }
}

#[test]
fn patches_of_large_graphs_are_full_but_not_too_full() {
    let star: Vec<(usize, usize, f64)> = (1..3_000).map(|i| (0, i, 1.0)).collect();
    let hub: Vec<(usize, usize, f64)> = (1..3_000).flat_map(|i| [(i - 1, i, 1.0), (0, i, 1e-3)]).collect();
    let pairs: Vec<(usize, usize, f64)> = (0..1_000).map(|i| (2 * i, 2 * i + 1, 1.0)).collect();
    let alone: Vec<(usize, usize, f64)> = (0..900).map(|i| (i, i + 1, 1.0)).collect();
    let cases = [
        ("a grid", grid(97), 2, 100),
        ("a star", laplacian(3_000, &star, 0.0), 2, 300),
        ("a hub", laplacian(3_000, &hub, 0.0), 1, 100),
        ("pairs", laplacian(2_000, &pairs, 0.0), 2, 400),
        ("a chain and nodes alone", laplacian(2_000, &alone, 1.0), 2, 25),
        ("one node", laplacian(1, &[], 1.0), 2, 1),
    ];
    for (name, a, k, least) in cases {
        let graph = strength(&a).graph;
        let aggregates = aggregate(&graph, |_| 1, k, 9, Visit::ByNumber);
        let patches = Patches::new(&graph, &aggregates, 1);
        check_patches(&patches, &aggregates, 1);
        let average = a.n_rows() / (patches.starts.len() - 1);
        assert!(average >= least, "{name}: {average} rows a patch");
    }
    assert_eq!(Patches::in_order(1_001, 2).starts, [0, 400, 800, 1_200, 1_600, 2_000, 2_002]);
}
