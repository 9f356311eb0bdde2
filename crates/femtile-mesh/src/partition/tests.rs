use crate::check::{CheckConfig, boundary_facets, check};
use crate::generate::{BoxConfig, SquareConfig, box_mesh, square};
use proptest::prelude::*;

use super::*;

fn meshes() -> Vec<Mesh> {
    let square = square(&SquareConfig { cells: [7, 5], ..SquareConfig::default() }).unwrap();
    let solid = box_mesh(&BoxConfig { cells: [4, 3, 5], ..BoxConfig::default() }).unwrap();
    vec![square, solid]
}

#[test]
fn parts_are_as_large_as_each_other() {
    for mesh in meshes() {
        for way in [Partitioner::Bisection, Partitioner::Hilbert] {
            for n in [1, 2, 3, 4, 7, 61, mesh.n_cells(), mesh.n_cells() + 5] {
                let partition = way.divide(&mesh, n);
                let quality = partition.quality(&mesh, &partition.owners(&mesh));
                assert!(quality.most_cells - quality.fewest_cells <= 1, "{way:?} {n}: {quality:?}");
                assert_eq!(partition.ranks().len(), mesh.n_cells());
                assert!(n > 1 || quality.n_shared_nodes == 0);
            }
        }
    }
}

#[test]
fn two_halves_of_a_box_share_the_nodes_between_them() {
    let mesh = box_mesh(&BoxConfig { cells: [8, 3, 3], ..BoxConfig::default() }).unwrap();
    let mesh = Mesh { points: mesh.points.iter().map(|p| [4.0 * p[0], p[1], p[2]]).collect(), ..mesh };
    let partition = Partitioner::Bisection.divide(&mesh, 2);
    let quality = partition.quality(&mesh, &partition.owners(&mesh));
    assert_eq!(quality.n_shared_nodes, 16);
}

/// Each node has one owner; a part has all cells of its nodes, and all their facets.
fn check_parts(mesh: &Mesh, partition: &Partition) {
    let (boundary, owners) = (boundary_facets(mesh), partition.owners(mesh));
    let parts: Vec<Option<Part>> =
        (0..partition.n_ranks()).map(|rank| Part::new(mesh, &boundary, &owners, rank)).collect();
    let mut owner = vec![None; mesh.n_nodes()];
    for (rank, part) in parts.iter().enumerate() {
        let Some(part) = part else { continue };
        for &node in &part.nodes[..part.n_owned] {
            assert_eq!(owner[node as usize].replace(rank), None);
        }
    }
    for (rank, part) in parts.iter().enumerate() {
        let Some(part) = part else { continue };
        part.mesh.validate().unwrap();
        part.boundary.belong_to(&part.mesh).unwrap();
        for (&node, point) in part.nodes.iter().zip(&part.mesh.points) {
            assert_eq!(mesh.points[node as usize], *point);
        }
        for (&node, &of) in part.nodes[part.n_owned..].iter().zip(&part.owners) {
            assert_eq!(owner[node as usize], Some(of as usize));
        }
        let owned = |node: &u32| owner[*node as usize] == Some(rank);
        let expected = (0..mesh.n_cells()).filter(|&cell| mesh.cell(cell).iter().any(owned)).count();
        assert_eq!(part.cells.len(), expected);
        for (local, &cell) in part.cells.iter().enumerate() {
            let nodes: Vec<u32> =
                part.mesh.cell(local).iter().map(|&node| part.nodes[node as usize]).collect();
            assert_eq!(nodes, mesh.cell(cell as usize));
        }
        let of_part = part.cells.iter().collect::<std::collections::BTreeSet<_>>();
        let n_facets = boundary.cells.iter().filter(|cell| of_part.contains(cell)).count();
        assert_eq!((part.facets.len(), part.boundary.len()), (n_facets, n_facets));
        // What others copy comes last among the owned nodes.
        let is_copied = |local: usize| {
            let cells =
                (0..part.mesh.n_cells()).filter(|&cell| part.mesh.cell(cell).contains(&(local as u32)));
            cells.flat_map(|cell| part.mesh.cell(cell)).any(|&node| node as usize >= part.n_owned)
        };
        assert!((0..part.n_owned).map(is_copied).is_sorted());
    }
    assert!(owner.iter().all(Option::is_some));
}

#[test]
fn parts_of_meshes_are_complete() {
    for mut mesh in meshes() {
        check(&mut mesh, &CheckConfig::default()).unwrap();
        for n in [1, 2, 3, 5, mesh.n_cells()] {
            check_parts(&mesh, &Partitioner::Bisection.divide(&mesh, n));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn parts_of_any_partition_are_complete(seed in prop::collection::vec(0u32..5, 360)) {
        for mesh in meshes() {
            let ranks = seed.iter().copied().cycle().take(mesh.n_cells()).collect();
            check_parts(&mesh, &Partition::new(ranks, 5).unwrap());
        }
    }
}

/// Enough points to be counted by intervals, many of them at the same place.
#[test]
fn many_points_are_cut_where_few_would_be() {
    let place = |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64;
    let scattered: Vec<[f64; 3]> = (0..40_000).map(|i| [2.0 * place(i), place(i + 7), 0.0]).collect();
    let in_rows: Vec<[f64; 3]> = (0..40_000).map(|i| [f64::from(i % 3), 0.0, f64::from(i % 2)]).collect();
    let equal = vec![[1.0; 3]; 20_000];
    for points in [scattered, in_rows, equal] {
        let found = super::bisection::divide(&points, 2);
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by(|&a, &b| points[a][0].total_cmp(&points[b][0]).then(a.cmp(&b)));
        for (place, &point) in order.iter().enumerate() {
            assert_eq!(found[point], u32::from(place >= points.len() / 2), "{place}");
        }
    }
}
