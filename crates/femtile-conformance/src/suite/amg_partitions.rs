//! Aggregates of graphs, and patches of these.

use femtile::amg::{Graph, PatchKernels};
use femtile::device::Reference;

use super::Scope;
use super::amg::AmgDevice;
use super::amg_levels::{Rows, network};
use super::problems::Random;

/// Aggregates and patches of a device are those of the reference, number by number, unless an aggregate has more nodes than
/// a patch may have, which devices leave to the host.
pub fn double_partitions_are_those_of_the_reference<D: AmgDevice>(device: &D, scope: &Scope) {
    let (mut n_made, mut n_patches, mut most) = (0, 0, 0);
    for (name, graph) in graphs(scope) {
        for least in [1, 9] {
            let partition = PatchKernels::<f32>::patch_partition(&Reference, &graph, least).unwrap();
            let expected = partition.expect("the reference leaves nothing out");
            let mut sizes = vec![0; expected.n_aggregates];
            expected
                .of_node
                .iter()
                .filter(|part| **part != u32::MAX)
                .for_each(|part| sizes[*part as usize] += 1);
            match PatchKernels::<f32>::patch_partition(device, &graph, least).unwrap() {
                Some(found) => {
                    assert_eq!(found, expected, "{name}, {least}");
                    n_made += 1;
                }
                None => assert!(sizes.iter().any(|size| *size > 400), "{name}, {least}"),
            }
            n_patches += expected.starts.len() - 1;
            most = expected.starts.windows(2).map(|ends| ends[1] - ends[0]).max().unwrap_or(0).max(most);
        }
    }
    assert!(
        n_made == 12 && n_patches > 20 && most <= 400,
        "{n_made}: {n_patches} patches of at most {most} rows"
    );
}

fn graphs(scope: &Scope) -> Vec<(&'static str, Graph)> {
    let side = scope.side.max(30);
    let pairs = |pairs: &mut dyn Iterator<Item = [u32; 2]>| pairs.flatten().collect::<Vec<u32>>();
    let s = side as u32;
    let across =
        (0..s * s).flat_map(|i| [(i % s + 1 < s).then(|| [i, i + 1]), (i + s < s * s).then(|| [i, i + s])]);
    let grid = Graph::from_cells(side * side, 2, &pairs(&mut across.flatten())).unwrap();
    let of_matrix = |n: usize, reach: usize| {
        let rows = Rows::of(&network::<f64>(n, reach, &mut Random::new(31)).on(&Reference));
        let joined = (0..n).flat_map(|i| rows.strong(i, 0.0).into_iter().map(move |j| [i as u32, j as u32]));
        Graph::from_cells(n, 2, &pairs(&mut joined.into_iter())).unwrap()
    };
    let star = Graph::from_cells(900, 2, &pairs(&mut (1..900).map(|i| [0, i]))).unwrap();
    let none = Graph::from_cells(1_000, 2, &[]).unwrap();
    // Blocks of a lattice, in which every node has 26 neighbours: patches are too heavy at first.
    let corners = |i: u32| {
        (0..8).map(move |k| i % 11 + k % 2 + 12 * (i / 11 % 11 + k / 2 % 2) + 144 * (i / 121 + k / 4))
    };
    let blocks =
        Graph::from_cells(12 * 12 * 12, 8, &(0..1_331).flat_map(corners).collect::<Vec<_>>()).unwrap();
    // Nodes of tetrahedra, six of them in a cube: some patches are too heavy at first, with lighter ones beside them.
    let at = |[x, y, z]: [u32; 3]| (x < 16 && y < 16 && z < 16).then_some(x + 16 * (y + 16 * z));
    let joined = (0..4_096).flat_map(|i: u32| {
        let place = [i % 16, i / 16 % 16, i / 256];
        (1..8).filter_map(move |k| Some([i, at([place[0] + k % 2, place[1] + k / 2 % 2, place[2] + k / 4])?]))
    });
    let tetrahedra = Graph::from_cells(4_096, 2, &pairs(&mut joined.into_iter())).unwrap();
    vec![
        ("grid", grid),
        ("blocks", blocks),
        ("tetrahedra", tetrahedra),
        ("network", of_matrix(700, 3)),
        ("dense network", of_matrix(1_100, 20)),
        ("star", star),
        ("none", none),
    ]
}
