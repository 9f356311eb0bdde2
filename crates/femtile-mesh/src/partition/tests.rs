use crate::CellKind;
use crate::check::{CheckConfig, boundary_facets, check};
use crate::generate::{BoxConfig, BoxSplit, SquareConfig, box_mesh, square};
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

#[test]
fn added_cells_bring_ghosts_alone() {
    let mesh = box_mesh(&BoxConfig { cells: [5, 3, 4], ..BoxConfig::default() }).unwrap();
    let (boundary, owners) = (boundary_facets(&mesh), Partitioner::Bisection.divide(&mesh, 3).owners(&mesh));
    let is_added = |cell: u32| cell.is_multiple_of(7);
    for rank in 0..3 {
        let plain = MeshPart::new(&mesh, &boundary, &owners, rank).unwrap();
        let more = MeshPart::and_cells(&mesh, &boundary, &owners, rank, is_added).unwrap();
        let is_here = |cell: &u32| is_added(*cell) || plain.cells.binary_search(cell).is_ok();
        assert_eq!(more.cells, (0..mesh.n_cells() as u32).filter(is_here).collect::<Vec<_>>());
        let owned = |part: &MeshPart| {
            let mut owned = part.nodes[..part.n_owned].to_vec();
            owned.sort_unstable();
            owned
        };
        assert_eq!(owned(&more), owned(&plain));
        let ghosts = more.nodes[more.n_owned..].iter().zip(&more.owners);
        assert!(more.cells.len() > plain.cells.len() && more.nodes.len() > plain.nodes.len());
        assert!(
            ghosts.into_iter().all(|(&node, &owner)| owners[node as usize] == owner && owner != rank as u32)
        );
    }
}

/// Each node has one owner; a part has all cells of its nodes, and all their facets.
fn check_parts(mesh: &Mesh, partition: &Partition) {
    let (boundary, owners) = (boundary_facets(mesh), partition.owners(mesh));
    let parts: Vec<Option<MeshPart>> =
        (0..partition.n_ranks()).map(|rank| MeshPart::new(mesh, &boundary, &owners, rank)).collect();
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
        let found = super::bisection::divide(&points[..], 2);
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by(|&a, &b| points[a][0].total_cmp(&points[b][0]).then(a.cmp(&b)));
        for (place, &point) in order.iter().enumerate() {
            assert_eq!(found[point], u32::from(place >= points.len() / 2), "{place}");
        }
    }
}

/// Sizes that are not multiples of the number of parts: parts of points on a line follow each other.
#[test]
fn parts_of_a_line_are_pieces_of_it() {
    for (n, n_parts) in [(21, 6), (11, 8), (35, 9), (40_003, 13)] {
        let point = |i: usize| [(i * 7_919 % n) as f64, 0.0, 0.0];
        let points: Vec<[f64; 3]> = (0..n).map(point).collect();
        let parts = super::bisection::divide(&points[..], n_parts);
        let mut along = vec![0; n];
        points.iter().zip(&parts).for_each(|(point, &part)| along[point[0] as usize] = part);
        assert!(along.is_sorted(), "{n} points, {n_parts} parts: {along:?}");
    }
}

/// Points in the order of a key, equal ones by their numbers, cut into even pieces.
fn cut_evenly<K: Ord>(n: usize, n_parts: usize, key: impl Fn(usize) -> K) -> Vec<u32> {
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by_key(|&i| key(i));
    let mut parts = vec![0; n];
    for part in 0..n_parts {
        order[n * part / n_parts..n * (part + 1) / n_parts].iter().for_each(|&i| parts[i] = part as u32);
    }
    parts
}

#[test]
fn pieces_of_bins_are_those_of_a_sorted_sequence() {
    for n in [0, 1, 2, 3, 100, 40_000] {
        for (n_keys, n_bins) in [(1, 1), (3, 2), (50, 50), (100_000, 64)] {
            let key = |i: usize| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) / 8 % n_keys;
            let bin = |i: usize| (key(i) * n_bins / n_keys) as u32;
            for n_parts in [1, 2, 3, 7, 64, n.max(1), n + 5] {
                let found = super::pieces::of_sorted(n, (n_bins, bin), |i| key(i) as u64, n_parts);
                assert_eq!(found, cut_evenly(n, n_parts, key), "{n} {n_keys} {n_bins} {n_parts}");
            }
        }
    }
}

/// Recursive bisection by whole sorts, for numbers of parts whose cuts are those of the parts.
fn bisected(points: &[[f64; 3]], order: &mut [usize], parts: &mut [u32], (first, n_parts): (u32, usize)) {
    let half = n_parts / 2;
    let middle = order.len() * half / n_parts;
    if n_parts == 1 || order.is_empty() {
        return order.iter().for_each(|&i| parts[i] = first);
    }
    let len = |axis: usize| {
        let along = || order.iter().map(|&i| points[i][axis]);
        along().fold(f64::MIN, f64::max) - along().fold(f64::MAX, f64::min)
    };
    let axis = (1..3).fold(0, |longest, axis| if len(axis) > len(longest) { axis } else { longest });
    order.sort_by(|&a, &b| points[a][axis].total_cmp(&points[b][axis]).then(a.cmp(&b)));
    let (low, high) = order.split_at_mut(middle);
    bisected(points, low, parts, (first, half));
    bisected(points, high, parts, (first + half as u32, n_parts - half));
}

#[test]
fn bisection_is_that_of_whole_sorts() {
    let noise = |i: usize, of: u64| (i as u64 ^ of << 40).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    for n in [0, 1, 2, 3, 1000, 16_384, 60_000] {
        for n_values in [1, 2, 5, 1 << 30] {
            let place = |i: usize, axis: u64| (noise(i, axis) % n_values) as f64 - 1.0;
            let points: Vec<[f64; 3]> =
                (0..n).map(|i| [place(i, 1), -0.0 * place(i, 2), 1.5 * place(i, 3)]).collect();
            for n_parts in [1, 2, 3, 4] {
                let mut expected = vec![0; n];
                bisected(&points, &mut (0..n).collect::<Vec<_>>(), &mut expected, (0, n_parts));
                let found = super::bisection::divide(&points[..], n_parts);
                assert_eq!(found, expected, "{n} points of {n_values} values, {n_parts} parts");
            }
        }
    }
}

#[test]
fn members_of_a_subset_are_counted() {
    for n_words in [0_u64, 1, 3, 1024, 1025, 3000] {
        let bits =
            |word: u64| (word + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) & word.wrapping_mul(0x1234_5678_9abc);
        let words: Vec<u64> =
            (0..n_words).map(|word| if word % 5 == 0 { u64::MAX } else { bits(word) }).collect();
        let subset = super::subset::Subset::new(words);
        let expected: Vec<u32> = (0..n_words as u32 * 64).filter(|&number| subset.has(number)).collect();
        assert_eq!(subset.members(), expected);
        for (place, &number) in expected.iter().enumerate() {
            assert_eq!(subset.place(number) as usize, place);
        }
    }
}

#[test]
fn classes_keep_the_order_of_their_numbers() {
    for n in [0, 1, 2, 1 << 14, 50_000] {
        let class = |i: usize| i.wrapping_mul(0x9e37_79b9) >> 7 & 3;
        let (found, sizes) = super::classes::by_class::<3>(n, class);
        let of = |wanted: usize| (0..n).filter(move |&i| class(i) == wanted).map(|i| i as u32);
        assert_eq!(found, (0..3).flat_map(of).collect::<Vec<_>>());
        assert_eq!(sizes, std::array::from_fn(|wanted| of(wanted).count()));
    }
}

#[test]
fn scattered_parts_are_those_of_ranks_with_the_whole_mesh() {
    let cubes = BoxConfig { cells: [5, 4, 6], split: BoxSplit::Hexahedron, ..BoxConfig::default() };
    let mut bent = box_mesh(&cubes).unwrap();
    crate::generate::deform(&mut bent, &crate::generate::DeformConfig { amplitude: 0.1, order: 3 }).unwrap();
    let simplices = box_mesh(&BoxConfig { cells: [7, 3, 5], ..BoxConfig::default() }).unwrap();
    for mesh in [bent, simplices] {
        let boundary = boundary_facets(&mesh);
        for n_ranks in [1, 2, 3, 8, 40] {
            let scattered = (0..mesh.n_cells()).map(|cell| (cell * 7919 % n_ranks) as u32).collect();
            let scattered = Partition::new(scattered, n_ranks).unwrap();
            for partition in [Partitioner::Bisection.divide(&mesh, n_ranks), scattered] {
                let owners = partition.owners(&mesh);
                let mut scatter = Scatter::new(&mesh, &boundary, &partition);
                let mut n_shared = 0;
                let mut n_edges = 0;
                for rank in 0..n_ranks {
                    let expected = MeshPart::new(&mesh, &boundary, &owners, rank);
                    let Some((part, of_rank)) = scatter.part(rank) else {
                        assert!(expected.is_none());
                        continue;
                    };
                    let expected = expected.unwrap();
                    assert_eq!((&part.nodes, part.n_owned), (&expected.nodes, expected.n_owned));
                    assert_eq!((&part.cells, &part.facets), (&expected.cells, &expected.facets));
                    assert_eq!((&part.owners, &part.boundary), (&expected.owners, &expected.boundary));
                    assert_eq!(
                        (&part.mesh.points, &part.mesh.cells),
                        (&expected.mesh.points, &expected.mesh.cells)
                    );
                    assert_eq!(part.mesh.curved, expected.mesh.curved);
                    n_shared += of_rank;
                    n_edges += n_owned_edges(&part, rank);
                }
                assert_eq!(n_shared, partition.quality(&mesh, &owners).n_shared_nodes);
                let whole = scatter.whole(n_edges);
                let n: u64 =
                    whole.entities.iter().zip([1, -1, 1, -1]).map(|(n, sign)| *n as i64 * sign).sum::<i64>()
                        as u64;
                // The Euler characteristic of a ball.
                assert!(mesh.kind != CellKind::Hexahedron || n == 1);
            }
        }
    }
}
