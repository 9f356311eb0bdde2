//! Properties of each part of the setup, on random matrices.

mod hard_matrices;
mod hidden_directions;

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::aggregate::aggregate;
use super::coarse;
use super::galerkin::galerkin;
use super::graph::{Aggregates, Graph, NONE};
use super::independent_set::{Visit, independent_set};
use super::prolong::Smoothing;
use super::rank_matrix::RankMatrix;
use super::rows::{RowAccess, Rows};
use super::spectrum::{HARMLESS, Scaling};
use super::strength::Strength;
use super::tentative::{NearNullspace, Tentative};

/// A graph Laplacian with weights, `shift` added to its diagonal.
pub(crate) fn laplacian(n: usize, edges: &[(usize, usize, f64)], shift: f64) -> Rows<f64> {
    let mut full = vec![std::collections::BTreeMap::new(); n];
    for &(a, b, weight) in edges {
        let (a, b) = (a % n, b % n);
        if a != b {
            *full[a].entry(b as u32).or_insert(0.0) -= weight;
            *full[b].entry(a as u32).or_insert(0.0) -= weight;
            *full[a].entry(a as u32).or_insert(0.0) += weight;
            *full[b].entry(b as u32).or_insert(0.0) += weight;
        }
    }
    full.iter_mut().enumerate().for_each(|(i, row)| *row.entry(i as u32).or_insert(0.0) += shift);
    let mut rows = Rows { n_cols: n, offsets: vec![0], columns: vec![], values: vec![] };
    for row in full {
        rows.columns.extend(row.keys());
        rows.values.extend(row.values());
        rows.offsets.push(rows.columns.len());
    }
    rows
}

fn edges(n: usize) -> impl Strategy<Value = Vec<(usize, usize, f64)>> {
    prop::collection::vec((0..n, 0..n, 0.1..2.0_f64), 0..4 * n)
}

pub(crate) fn matrices() -> impl Strategy<Value = Rows<f64>> {
    (1..60_usize).prop_flat_map(|n| edges(n).prop_map(move |edges| laplacian(n, &edges, 1e-3)))
}

/// A path through a square grid of `side` points per side, numbered row by row.
pub(crate) fn grid(side: usize) -> Rows<f64> {
    let mut edges = Vec::new();
    for i in 0..side * side {
        if i % side + 1 < side {
            edges.push((i, i + 1, 1.0));
        }
        if i + side < side * side {
            edges.push((i, i + side, 1.0));
        }
    }
    laplacian(side * side, &edges, 0.0)
}

pub(crate) fn strength(a: &Rows<f64>) -> Strength {
    Strength::new(a, &diagonal(a), 1, [0.0; 2], 1.0)
}

fn diagonal(a: &Rows<f64>) -> Vec<f64> {
    (0..a.n_rows()).map(|row| entry(a, row, row)).collect()
}

fn entry(a: &Rows<f64>, row: usize, column: usize) -> f64 {
    let (columns, values) = a.row(row);
    columns.iter().zip(values).filter(|(c, _)| **c as usize == column).map(|(_, v)| v).sum()
}

/// Edges on the shortest path from a node to each other one.
fn distances(graph: &Graph, from: usize) -> Vec<usize> {
    let mut found = vec![usize::MAX; graph.n_nodes()];
    let mut ring = vec![from];
    found[from] = 0;
    while let Some(node) = ring.pop() {
        for &to in graph.of(node) {
            if found[to as usize] > found[node] + 1 {
                found[to as usize] = found[node] + 1;
                ring.push(to as usize);
            }
        }
    }
    found
}

proptest! {
    #[test]
    fn independent_sets_are_independent_and_maximal(a in matrices(), k in 1..5_usize, is_by_number: bool) {
        let graph = strength(&a).graph;
        let visit = if is_by_number { Visit::ByNumber } else { Visit::InRounds };
        let roots = independent_set(&graph, k, visit);
        let mut is_covered = vec![false; graph.n_nodes()];
        for &root in &roots {
            let distances = distances(&graph, root as usize);
            for &other in &roots {
                prop_assert!(other == root || distances[other as usize] > k);
            }
            (0..graph.n_nodes()).filter(|&node| distances[node] <= k).for_each(|node| is_covered[node] = true);
        }
        for (node, is_covered) in is_covered.into_iter().enumerate() {
            prop_assert!(is_covered || !graph.is_connected(node));
        }
    }

    #[test]
    fn gaps_between_roots_get_roots_where_enough_walks_end_free(a in matrices(), k in 1..5_usize) {
        let graph = strength(&a).graph;
        let n = graph.n_nodes();
        let first = independent_set(&graph, k, Visit::InRounds);
        let roots = independent_set(&graph, k, Visit::Filling);
        prop_assert!(first.iter().all(|root| roots.contains(root)));
        let distances: Vec<Vec<usize>> = (0..n).map(|node| distances(&graph, node)).collect();
        let to = |roots: &[u32], node: usize| roots.iter().map(|&root| distances[node][root as usize]).min();
        let is_free = |node: usize| to(&first, node).is_none_or(|distance| distance > 1);
        for node in (0..n).filter(|&node| graph.is_connected(node)) {
            let mut ends = vec![node as u32];
            for _ in 1..k {
                ends = ends.iter().flat_map(|&end| graph.of(end as usize)).copied().collect();
            }
            let n_free = ends.iter().filter(|&&end| is_free(end as usize)).count();
            let is_gap = k > 1 && 3 * n_free >= 2 * ends.len();
            if roots.contains(&(node as u32)) {
                prop_assert!(is_gap || first.contains(&(node as u32)));
                let others: Vec<u32> = roots.iter().copied().filter(|&root| root as usize != node).collect();
                prop_assert!(to(&others, node).is_none_or(|distance| distance >= k));
            } else {
                prop_assert!(!is_gap || to(&roots, node).is_some_and(|distance| distance < k));
            }
        }
    }

    #[test]
    fn aggregates_cover_what_is_connected_and_are_connected(a in matrices(), k in 1..4_usize, least in 1..12_u32, order in 0..3_usize) {
        let graph = strength(&a).graph;
        let visit = [Visit::ByNumber, Visit::InRounds, Visit::Filling][order];
        let parts = aggregate(&graph, |_| 1, k, least, visit);
        let members = parts.members();
        for node in 0..graph.n_nodes() {
            prop_assert_eq!(parts.of_node[node] != NONE, graph.is_connected(node));
        }
        for part in 0..parts.n {
            let inside: BTreeSet<u32> = members.of(part).iter().copied().collect();
            let mut reached = BTreeSet::from([members.of(part)[0]]);
            let mut ring: Vec<u32> = reached.iter().copied().collect();
            while let Some(node) = ring.pop() {
                for &to in graph.of(node as usize) {
                    if inside.contains(&to) && reached.insert(to) {
                        ring.push(to);
                    }
                }
            }
            prop_assert_eq!(reached, inside);
        }
    }

    #[test]
    fn the_coarse_matrix_is_the_plain_triple_product(a in matrices()) {
        let (p, _) = prolongator(&a);
        let coarse = galerkin(&a, &p, &p.transpose());
        for i in 0..p.n_cols {
            for j in 0..p.n_cols {
                let mut expected = 0.0;
                for row in 0..a.n_rows() {
                    let (columns, values) = a.row(row);
                    for (&column, value) in columns.iter().zip(values) {
                        expected += entry(&p, row, i) * value * entry(&p, column as usize, j);
                    }
                }
                prop_assert!((entry(&coarse, i, j) - expected).abs() < 1e-12 * (1.0 + expected.abs()));
            }
        }
        for row in 0..coarse.n_rows() {
            prop_assert!(coarse.row(row).0.is_sorted_by(|a, b| a < b));
        }
    }

    #[test]
    fn no_eigenvalue_exceeds_the_scaling_by_a_harmful_factor(a in matrices()) {
        let Scaling { inverse_diagonal: inverse, largest, .. } = Scaling::new(&RankMatrix::whole(a.clone()).unwrap(), &diagonal(&a), 1).unwrap();
        for (row, inverse) in inverse.into_iter().enumerate() {
            let sum = a.row(row).1.iter().map(|v| v.abs()).sum::<f64>() * inverse;
            prop_assert!(sum <= HARMLESS * largest * (1.0 + 1e-12));
            prop_assert!(inverse * entry(&a, row, row) <= 1.0 + 1e-12);
        }
    }

    #[test]
    fn the_coarsest_inverse_is_one(a in matrices()) {
        let inverse = coarse::inverse(&a, None, false).unwrap().matrix;
        for i in 0..a.n_rows() {
            for j in 0..a.n_rows() {
                let column: Vec<f64> = (0..a.n_rows()).map(|row| entry(&inverse, row, j)).collect();
                let expected = if i == j { 1.0 } else { 0.0 };
                prop_assert!((product(&a, i, &column) - expected).abs() < 1e-9);
            }
        }
    }
}

fn product(a: &Rows<f64>, row: usize, x: &[f64]) -> f64 {
    let (columns, values) = a.row(row);
    columns.iter().zip(values).map(|(&column, value)| value * x[column as usize]).sum()
}

fn prolongator(a: &Rows<f64>) -> (Rows<f64>, Tentative<f64>) {
    let Strength { graph, is_strong, .. } = strength(a);
    let aggregates = aggregate(&graph, |_| 1, 2, 9, Visit::ByNumber);
    let b = NearNullspace::constants(a.n_rows(), 1);
    let tentative = Tentative::new(&b, &aggregates, 1);
    let (is_strong, aggregates) = (is_strong.as_slice(), &aggregates);
    let b = b.values.as_slice();
    let p = Smoothing {
        a,
        is_strong,
        is_dense: &[],
        aggregates,
        tentative: &tentative.values,
        n_vectors: 1,
        b,
        block: 1,
        largest: 2.0,
        most: 2.5,
    }
    .prolongator();
    (p, tentative)
}

#[test]
fn the_prolongator_reproduces_what_the_matrix_maps_to_zero() {
    let a = grid(23);
    let (p, tentative) = prolongator(&a);
    for row in 0..a.n_rows() {
        assert!((product(&p, row, &tentative.coarse.values) - 1.0).abs() < 1e-12);
    }
}

#[test]
fn tentative_columns_are_orthonormal_and_give_the_vectors_back() {
    let (n, k) = (40, 3);
    let aggregates = Aggregates { n: 5, of_node: (0..n as u32).map(|node| node * 7 % 5).collect() };
    let value = |i: usize| ((i * i * 37 + 11 * i) % 101) as f64 / 50.0 - 1.0;
    let b = NearNullspace { n_vectors: k, values: (0..2 * n * k).map(value).collect() };
    let tentative = Tentative::<f64>::new(&b, &aggregates, 2);
    assert_eq!(tentative.n_zero, 0);
    for part in 0..aggregates.n {
        let rows: Vec<usize> =
            (0..2 * n).filter(|row| aggregates.of_node[row / 2] as usize == part).collect();
        for i in 0..k {
            for j in 0..k {
                let dot: f64 = rows
                    .iter()
                    .map(|row| tentative.values[k * row + i] * tentative.values[k * row + j])
                    .sum();
                assert!((dot - if i == j { 1.0 } else { 0.0 }).abs() < 1e-13);
            }
            for &row in &rows {
                let again: f64 = (0..k)
                    .map(|j| tentative.values[k * row + j] * tentative.coarse.values[k * (k * part + j) + i])
                    .sum();
                assert!((again - b.values[k * row + i]).abs() < 1e-13);
            }
        }
    }
}

#[test]
fn an_aggregate_with_too_few_rows_has_zero_columns() {
    let aggregates = Aggregates { n: 1, of_node: vec![0, 0] };
    let b = NearNullspace { n_vectors: 3, values: vec![1.0, 2.0, 3.0, 1.0, 5.0, 4.0] };
    let tentative = Tentative::<f64>::new(&b, &aggregates, 1);
    assert_eq!(tentative.n_zero, 1);
    assert!(tentative.values[2].abs() < 1e-14 && tentative.values[5].abs() < 1e-14);
}

#[test]
fn small_aggregates_are_dealt_out_and_chains_keep_theirs() {
    let weights =
        |parts: &Aggregates| (0..parts.n).map(|part| parts.members().of(part).len()).collect::<Vec<_>>();
    let square = aggregate(&strength(&grid(30)).graph, |_| 1, 3, 9, Visit::ByNumber);
    assert!(weights(&square).iter().all(|&n| n >= 4), "{:?}", weights(&square));
    let chain: Vec<(usize, usize, f64)> = (0..99).map(|i| (i, i + 1, 1.0)).collect();
    let chain = aggregate(&strength(&laplacian(100, &chain, 0.0)).graph, |_| 1, 2, 9, Visit::ByNumber);
    assert!((30..40).contains(&chain.n), "{} aggregates", chain.n);
}

#[test]
fn a_singular_coarsest_matrix_is_solved_where_it_can_be() {
    let a = grid(5);
    let inverse = coarse::inverse(&a, None, false).unwrap().matrix;
    // A right side that adds up to zero is one of the matrix.
    let b: Vec<f64> = (0..25).map(|i| i as f64 - 12.0).collect();
    let x: Vec<f64> = (0..25).map(|row| product(&inverse, row, &b)).collect();
    for (row, b) in b.iter().enumerate() {
        assert!((product(&a, row, &x) - b).abs() < 1e-10);
    }
}

#[test]
fn the_inverse_of_an_only_level_is_definite() {
    let edges = [(0, 1, 1.0), (1, 2, 3.0), (2, 0, 1.0), (3, 4, 1.0), (4, 5, 1e3), (5, 6, 1.0)];
    for a in [laplacian(7, &edges, 0.0), grid(5)] {
        let ones = NearNullspace::constants(a.n_rows(), 1);
        for b in [None, Some(&ones)] {
            let below = coarse::inverse(&a, b, false).unwrap();
            assert!(below.n_zero > 0 && coarse::n_zero(&below.matrix, None).unwrap() > 0);
            let only = coarse::inverse(&a, b, true).unwrap();
            assert_eq!(only.n_zero, below.n_zero);
            assert_eq!(coarse::n_zero(&only.matrix, None), Ok(0));
        }
    }
}

#[test]
fn a_negative_pivot_is_named() {
    let mut a = laplacian(3, &[(0, 1, 1.0), (1, 2, 1.0)], 0.5);
    let last = a.values.len() - 1;
    a.values[last] = 0.1;
    assert_eq!(coarse::inverse(&a, None, false).unwrap_err().0, 2);
}

#[test]
fn weak_connections_are_left_out_and_blocks_measured_whole() {
    let of_edges = |edges: &[(usize, usize, f64)]| laplacian(8, edges, 0.0);
    let a = of_edges(&[(0, 1, 1.0), (1, 2, 1e-6), (2, 3, 1.0)]);
    let graph = Strength::new(&a, &diagonal(&a), 1, [0.1; 2], 1.0).graph;
    let neighbours: Vec<&[u32]> = (0..4).map(|node| graph.of(node)).collect();
    assert_eq!(neighbours, [&[1][..], &[0], &[3], &[2]]);

    // Nodes of two rows: 0 and 1, 2 and 3 are strongly connected; 1 and 2 weakly.
    let of_nodes = |weak: f64| {
        let within = (0..4).map(|node| (2 * node, 2 * node + 1, 1.0));
        let between = [(1, 2, 1.0), (3, 4, weak), (5, 6, 1.0)];
        of_edges(&within.chain(between).collect::<Vec<_>>())
    };
    let lists = |a: &Rows<f64>, [least, relative]: [f64; 2]| {
        let graph = Strength::new(a, &diagonal(a), 2, [least; 2], relative).graph;
        (0..4).map(|node| graph.of(node).to_vec()).collect::<Vec<_>>()
    };
    let (pairs, chain) =
        (vec![vec![1], vec![0], vec![3], vec![2]], vec![vec![1], vec![0, 2], vec![1, 3], vec![2]]);
    assert_eq!(lists(&of_nodes(1e-6), [0.1, 0.0]), pairs);
    assert_eq!(lists(&of_nodes(1e-6), [0.0, 0.0]), chain);
    // Above the threshold, but less than half of what other nodes are coupled by.
    assert_eq!(lists(&of_nodes(0.3), [0.01, 0.0]), chain);
    assert_eq!(lists(&of_nodes(0.3), [0.01, 1.0]), pairs);
}

#[test]
fn the_coarsest_solve_of_a_singular_matrix_has_nothing_along_the_near_nullspace() {
    let a = grid(9);
    let rounded = Rows {
        n_cols: a.n_cols,
        offsets: a.offsets.clone(),
        columns: a.columns.clone(),
        values: a.values.iter().map(|value| (value / 3.0) as f32).collect(),
    };
    let inverse = coarse::inverse(&rounded, Some(&NearNullspace::constants(81, 1)), false).unwrap().matrix;
    for row in 0..81 {
        let (columns, values) = inverse.row(row);
        let sum: f64 = values.iter().map(|value| f64::from(*value)).sum();
        let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        assert!(sum.abs() < 1e-5 * f64::from(largest) && largest < 10.0, "row {row}: {sum:e}, {largest:e}");
        assert!(
            columns.iter().zip(values).all(|(&column, value)| *value == inverse.row(column as usize).1[row])
        );
        // A G is the identity except for the mean.
        for column in 0..81 {
            let of_column: Vec<f64> = (0..81).map(|i| f64::from(inverse.row(i).1[column])).collect();
            let expected = if row == column { 1.0 } else { 0.0 } - 1.0 / 81.0;
            assert!((product(&a, row, &of_column) / 3.0 - expected).abs() < 1e-5);
        }
    }
}

#[test]
fn the_prolongator_reproduces_a_near_nullspace_that_is_not_constant_beside_weak_entries() {
    // D A D maps the reciprocals of D to zero; entries along one axis are weak.
    let side = 12;
    let edges = |i: usize| {
        let right = (i % side + 1 < side).then_some((i, i + 1, 1.0));
        right.into_iter().chain((i + side < side * side).then_some((i, i + side, 1e-3)))
    };
    let mut a = laplacian(side * side, &(0..side * side).flat_map(edges).collect::<Vec<_>>(), 0.0);
    let d = |row: usize| 1.0 + 0.5 * ((row / side) % 3) as f64;
    for row in 0..a.n_rows() {
        for at in a.offsets[row]..a.offsets[row + 1] {
            a.values[at] *= d(row) * d(a.columns[at] as usize);
        }
    }
    let b = NearNullspace { n_vectors: 1, values: (0..a.n_rows()).map(|row| 1.0 / d(row)).collect() };
    let Strength { graph, is_strong, .. } = Strength::new(&a, &diagonal(&a), 1, [0.1; 2], 1.0);
    let aggregates = aggregate(&graph, |_| 1, 2, 9, Visit::ByNumber);
    let tentative = Tentative::new(&b, &aggregates, 1);
    let (aggregates, is_strong, of_b) = (&aggregates, is_strong.as_slice(), b.values.as_slice());
    let smoothing = Smoothing {
        a: &a,
        is_strong,
        is_dense: &[],
        aggregates,
        tentative: &tentative.values,
        n_vectors: 1,
        b: of_b,
        block: 1,
        largest: 2.0,
        most: 2.5,
    };
    let p = smoothing.prolongator();
    for row in 0..a.n_rows() {
        let found = product(&p, row, &tentative.coarse.values);
        assert!((found - b.values[row]).abs() < 1e-12, "row {row}: {found}");
    }
}

#[test]
fn nodes_with_weak_blocks_alone_are_joined_to_the_nearest_one() {
    // A chain of nodes of two rows: the diagonal blocks have a stiff row, the couplings of the soft one are below the threshold.
    let n = 5;
    let mut edges = Vec::new();
    for node in 0..n - 1 {
        edges.push((2 * node + 1, 2 * node + 3, 0.01 * (1 + node) as f64));
    }
    let mut a = laplacian(2 * n, &edges, 1e-6);
    for row in (0..2 * n).step_by(2) {
        let at = (a.offsets[row]..a.offsets[row + 1]).find(|&at| a.columns[at] as usize == row).unwrap();
        a.values[at] = 1.0;
    }
    let graph = Strength::new(&a, &diagonal(&a), 2, [0.1; 2], 1.0).graph;
    let lists: Vec<Vec<u32>> = (0..n).map(|node| graph.of(node).to_vec()).collect();
    assert_eq!(lists, [vec![1], vec![0, 2], vec![1, 3], vec![2, 4], vec![3]]);
}
