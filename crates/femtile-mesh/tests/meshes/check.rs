//! The check: what it repairs, what it warns of, what it refuses, and which cell it names.

use std::collections::BTreeMap;

use femtile_mesh::check::{CheckConfig, CheckError, CheckReport, check, components};
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile_mesh::{CellKind, Field, Mesh};
use proptest::prelude::*;
use proptest::test_runner::TestRng;

fn cube(n: usize) -> Mesh {
    box_mesh(&BoxConfig { cells: [n; 3], ..BoxConfig::default() }).unwrap()
}

fn checked(mesh: &mut Mesh) -> CheckReport {
    check(mesh, &CheckConfig::default()).unwrap()
}

fn refusal(mesh: &mut Mesh) -> CheckError {
    check(mesh, &CheckConfig::default()).unwrap_err()
}

/// Adds copies of the points moved by `shift`, and the cells on them; returns the first new node.
fn append(mesh: &mut Mesh, other: &Mesh, shift: [f64; 3]) -> u32 {
    let first = mesh.n_nodes() as u32;
    mesh.points.extend(other.points.iter().map(|p| std::array::from_fn(|d| p[d] + shift[d])));
    mesh.cells.extend(other.cells.iter().map(|node| node + first));
    first
}

#[test]
fn a_sound_box_passes_without_a_word() {
    for split in [BoxSplit::Kuhn, BoxSplit::Five, BoxSplit::Hexahedron] {
        let mut mesh = box_mesh(&BoxConfig { cells: [3, 2, 5], split, ..BoxConfig::default() }).unwrap();
        let before = mesh.clone();
        let report = checked(&mut mesh);
        assert_eq!(mesh, before);
        assert_eq!(report.warnings, Vec::<String>::new());
        assert!((report.volume - 1.0).abs() < 1e-13);
        assert_eq!((report.n_components, report.n_boundary_components), (1, 1));
        assert!(report.worst_quality > 0.2 && report.worst_quality <= 1.0 + 1e-12, "{report:?}");
    }
    for split in [SquareSplit::Triangles, SquareSplit::Quadrilateral] {
        let mut mesh = square(&SquareConfig { cells: [3, 7], split, ..SquareConfig::default() }).unwrap();
        let report = checked(&mut mesh);
        assert_eq!((report.warnings.len(), report.boundary.len()), (0, 20));
        assert!((report.volume - 1.0).abs() < 1e-13);
    }
}

#[test]
fn equilateral_cells_have_quality_one_and_scale_does_not_matter() {
    for scale in [1.0, 1e-30, 1e30, -3.0] {
        let tetrahedron: Vec<[f64; 3]> = [[1., 1., 1.], [-1., -1., 1.], [-1., 1., -1.], [1., -1., -1.]]
            .map(|p: [f64; 3]| p.map(|x| scale * x))
            .to_vec();
        let mut mesh = Mesh::new(tetrahedron, CellKind::Tetrahedron, vec![0, 1, 2, 3]).unwrap();
        let report = checked(&mut mesh);
        assert!((report.worst_quality - 1.0).abs() < 1e-14);
        assert_eq!(report.n_flipped, usize::from(scale < 0.0));
        let triangle = vec![[0.0; 3], [scale, 0.0, 0.0], [0.5 * scale, 0.75f64.sqrt() * scale, 0.0]];
        let mut mesh = Mesh::new(triangle, CellKind::Triangle, vec![0, 1, 2]).unwrap();
        assert!((checked(&mut mesh).worst_quality - 1.0).abs() < 1e-14);
    }
}

#[test]
fn flipped_cells_are_turned_back_and_counted() {
    for kind in [BoxSplit::Kuhn, BoxSplit::Hexahedron] {
        let mut mesh = box_mesh(&BoxConfig { cells: [3; 3], split: kind, ..BoxConfig::default() }).unwrap();
        let sound = checked(&mut mesh.clone());
        let n = mesh.kind.n_nodes();
        for cell in [0, 7, 11] {
            if n == 4 {
                mesh.cells.swap(n * cell + 1, n * cell + 2);
            } else {
                (0..4).for_each(|i| mesh.cells.swap(n * cell + i, n * cell + 4 + i));
            }
        }
        let report = checked(&mut mesh);
        assert_eq!(report.n_flipped, 3);
        assert_eq!(report.boundary.len(), sound.boundary.len());
        assert!((report.volume - 1.0).abs() < 1e-13);
        assert_eq!(checked(&mut mesh).n_flipped, 0);
    }
}

#[test]
fn orphans_are_dropped_and_fields_and_facets_follow() {
    let mut mesh = cube(2);
    let original = mesh.clone();
    for at in [0usize, 5, 29] {
        mesh.points.insert(at, [9.0, 9.0, at as f64]);
        let shift = |node: &mut u32| *node += u32::from(*node as usize >= at);
        mesh.cells.iter_mut().chain(&mut mesh.facets.nodes).for_each(shift);
    }
    mesh.facets.nodes.extend([0, 1, 2]);
    mesh.facets.tags.push(7);
    let values = mesh.points.iter().flat_map(|p| [p[0], p[1] + p[2]]).collect();
    mesh.node_fields.insert("pair".into(), Field { n_components: 2, values });
    let report = checked(&mut mesh);
    assert_eq!((report.n_orphans, report.n_tagged_inside, report.n_nodes), (3, 1, 27));
    let values = original.points.iter().flat_map(|p| [p[0], p[1] + p[2]]).collect();
    assert_eq!(mesh.node_fields["pair"].values, Vec::<f64>::from_iter::<Vec<f64>>(values));
    mesh.node_fields = BTreeMap::new();
    assert_eq!(mesh, original);
}

#[test]
fn a_crack_is_warned_of_and_merging_closes_it() {
    let mut mesh = cube(2);
    append(&mut mesh, &cube(2), [1.0, 0.0, 0.0]);
    let mut cracked = mesh.clone();
    let report = checked(&mut cracked);
    assert_eq!((report.n_duplicate_nodes, report.n_crack_facets, report.n_components), (9, 16, 2));
    assert_eq!(report.boundary.len(), 96);
    assert!(report.warnings.iter().any(|w| w.contains("crack")), "{:?}", report.warnings);
    let report = check(&mut mesh, &CheckConfig { merge_duplicates: true, ..CheckConfig::default() }).unwrap();
    assert_eq!((report.n_merged, report.n_duplicate_nodes, report.n_crack_facets), (9, 0, 0));
    assert_eq!((report.n_nodes, report.boundary.len(), report.n_components), (45, 80, 1));
    assert_eq!(report.n_orphans, 0);
}

#[test]
fn nodes_within_the_tolerance_are_merged_and_others_are_not() {
    for (gap, expected) in [(0.0, 4), (0.5e-6, 4), (2e-6, 0)] {
        let mut mesh = cube(1);
        append(&mut mesh, &cube(1), [1.0 + gap, 0.0, -0.0]);
        let config =
            CheckConfig { merge_duplicates: true, tolerance: 1e-6 / 6f64.sqrt(), ..Default::default() };
        let report = check(&mut mesh, &config).unwrap();
        assert_eq!(report.n_merged, expected, "{gap}");
    }
}

#[test]
fn merging_what_a_cell_needs_apart_is_refused() {
    let mut mesh = cube(4);
    let config = CheckConfig { merge_duplicates: true, tolerance: 0.2, ..CheckConfig::default() };
    let error = check(&mut mesh, &config).unwrap_err();
    assert!(matches!(error, CheckError::RepeatedNode { cell: 0, after_merge: true, .. }), "{error}");
}

#[test]
fn a_repeated_node_is_refused_and_its_cell_named() {
    let mut mesh = cube(3);
    mesh.cells[4 * 17 + 3] = mesh.cells[4 * 17];
    let node = mesh.cells[4 * 17];
    let error = refusal(&mut mesh);
    assert!(matches!(error, CheckError::RepeatedNode { cell: 17, node: n, after_merge: false } if n == node));
}

#[test]
fn a_flat_cell_is_refused_and_named_whatever_the_scale() {
    for scale in [1.0, 1e-9, 1e12] {
        let mut mesh = cube(2);
        mesh.points.iter_mut().for_each(|p| *p = p.map(|x| scale * (x + 0.1)));
        let first = mesh.n_nodes() as u32;
        mesh.points.extend([[5.1, 0.3, 0.1], [6.1, 0.7, 0.2], [5.4, 0.9, 0.3]].map(|p| p.map(|x| scale * x)));
        let (a, b) = (mesh.points[first as usize], mesh.points[first as usize + 1]);
        mesh.points.push(std::array::from_fn(|d| a[d] + 0.3 * (b[d] - a[d])));
        mesh.cells.splice(4 * 9..4 * 9, [first, first + 1, first + 2, first + 3]);
        let error = refusal(&mut mesh);
        assert!(matches!(error, CheckError::Degenerate { cell: 9, .. }), "{error}");
    }
}

#[test]
fn a_sliver_is_warned_of_with_its_cell() {
    let mut mesh = cube(2);
    let first = append(&mut mesh, &cube(1), [2.0, 0.0, 0.0]);
    mesh.cells.truncate(4 * 48 + 4);
    mesh.points[mesh.cells[4 * 48 + 3] as usize] = [2.5, 0.5, 1e-7];
    assert!(first > 0);
    let report = checked(&mut mesh);
    assert_eq!(report.worst_cell, 48);
    assert!(report.worst_quality < 1e-3 && report.worst_quality > 0.0);
    assert!(report.warnings.iter().any(|w| w.contains("cell 48") && w.contains("sliver")));
}

#[test]
fn duplicate_cells_are_refused_inside_and_on_the_boundary_in_any_order_of_nodes() {
    let mut random = TestRng::deterministic_rng(Default::default());
    for cell in [0, 50, 161] {
        let mut mesh = cube(3);
        let mut copy = mesh.cell(cell).to_vec();
        for i in 1..4 {
            copy.swap(i, random.next_u32() as usize % (i + 1));
        }
        mesh.cells.extend(copy);
        let error = refusal(&mut mesh);
        assert!(
            matches!(error, CheckError::DuplicateCells { first, second: 162, .. } if first == cell),
            "{error}"
        );
    }
    let mut lone = cube(1);
    lone.cells.truncate(4);
    lone.cells.extend_from_within(..);
    assert!(matches!(refusal(&mut lone), CheckError::DuplicateCells { first: 0, second: 1, .. }));
}

#[test]
fn a_face_of_three_cells_is_refused_and_all_three_named() {
    let mut mesh = cube(2);
    // Cell 0 and one more cell share the face opposite to local node 1; a third one joins them.
    let face = [mesh.cell(0)[0], mesh.cell(0)[2], mesh.cell(0)[3]];
    let sharing = |mesh: &Mesh| -> Vec<usize> {
        (0..mesh.n_cells()).filter(|&c| face.iter().all(|n| mesh.cell(c).contains(n))).collect()
    };
    assert_eq!(sharing(&mesh).len(), 2);
    mesh.points.push([0.7, 0.1, 0.9]);
    mesh.cells.extend([face[0], face[1], face[2], 27]);
    let CheckError::SharedFacet { nodes, cells, .. } = refusal(&mut mesh) else { panic!("not refused") };
    assert_eq!(cells, sharing(&mesh));
    assert!(face.iter().all(|node| nodes.contains(node)));
}

#[test]
fn two_cells_on_the_same_side_of_their_face_are_refused() {
    let points = vec![[0., 0., 0.], [1., 0., 0.], [0., 1., 0.], [0., 0., 1.], [0.3, 0.3, 0.7]];
    let mut mesh = Mesh::new(points, CellKind::Tetrahedron, vec![0, 1, 2, 3, 0, 1, 2, 4]).unwrap();
    assert!(matches!(refusal(&mut mesh), CheckError::FoldedCells { first: 0, second: 1, .. }));
}

/// Two layers of cubes, the upper one mirrored: its diagonals clash with those of the lower one.
fn clashing(n: usize) -> Mesh {
    let config = |z: f64| BoxConfig {
        lower: [0.0, 0.0, z],
        upper: [1.0, 1.0, z + 0.5],
        cells: [n, n, 1],
        split: BoxSplit::Kuhn,
    };
    let mut mesh = box_mesh(&config(0.0)).unwrap();
    let mut upper = box_mesh(&config(0.5)).unwrap();
    upper.points.iter_mut().for_each(|p| p[0] = 1.0 - p[0]);
    append(&mut mesh, &upper, [0.0; 3]);
    mesh.facets = Default::default();
    mesh
}

#[test]
fn clashing_diagonals_are_refused_with_and_without_common_nodes() {
    for merge_duplicates in [false, true] {
        for n in [1, 2, 5] {
            let mut mesh = clashing(n);
            let error =
                check(&mut mesh, &CheckConfig { merge_duplicates, ..Default::default() }).unwrap_err();
            let CheckError::OverlappingFacets { first, second, at } = error else { panic!("{error}") };
            assert!(first < 6 * n * n && second >= 6 * n * n, "{first} {second}");
            assert!((at[2] - 0.5).abs() < 1e-12);
        }
    }
}

#[test]
fn clashing_diagonals_are_refused_where_the_interface_is_curved() {
    for merge_duplicates in [false, true] {
        for n in [1, 2, 4] {
            let mut mesh = clashing(n);
            mesh.points.iter_mut().for_each(|p| p[2] += 0.2 * (2.0 * p[0] - 1.1).powi(2) * p[1] / n as f64);
            let error =
                check(&mut mesh, &CheckConfig { merge_duplicates, ..Default::default() }).unwrap_err();
            // Where no face is folded the other way, all that is between the parts are gaps.
            let is_named = matches!(error, CheckError::OverlappingFacets { .. } | CheckError::Gaps { .. });
            assert!(is_named, "{error}");
        }
    }
}

#[test]
fn holes_of_one_cell_are_no_clash_wherever_they_are() {
    let mesh = cube(3);
    for cell in 0..mesh.n_cells() {
        let mut holed = mesh.clone();
        holed.cells.drain(4 * cell..4 * cell + 4);
        checked(&mut holed);
    }
}

#[test]
fn a_hanging_node_is_refused_in_two_and_in_three_dimensions() {
    let coarse = SquareConfig { cells: [1, 1], ..SquareConfig::default() };
    let fine =
        SquareConfig { lower: [1.0, 0.0], upper: [2.0, 1.0], cells: [2, 2], ..SquareConfig::default() };
    let mut mesh = square(&coarse).unwrap();
    append(&mut mesh, &square(&fine).unwrap(), [0.0; 3]);
    let error = check(&mut mesh, &CheckConfig { merge_duplicates: true, ..Default::default() }).unwrap_err();
    assert!(matches!(error, CheckError::OverlappingFacets { first: 0, .. }), "{error}");

    let mut mesh = cube(1);
    append(&mut mesh, &cube(64), [0.0, 1.0, 0.0]);
    let error = check(&mut mesh, &CheckConfig { merge_duplicates: true, ..Default::default() }).unwrap_err();
    assert!(matches!(error, CheckError::OverlappingFacets { first: 0..6, second: 6.., .. }), "{error}");
}

/// Two by two squares beside others, the interface at x = 1.
fn hanging_squares(n: usize) -> Mesh {
    let part = |x: f64, n: usize| {
        let (lower, upper, split) = ([x, 0.0], [x + 1.0, 1.0], SquareSplit::Quadrilateral);
        square(&SquareConfig { lower, upper, cells: [n; 2], split }).unwrap()
    };
    let mut mesh = part(0.0, 2);
    append(&mut mesh, &part(1.0, n), [0.0; 3]);
    mesh
}

/// The same of cubes.
fn hanging_cubes(n: usize) -> Mesh {
    let part = |n: usize| {
        box_mesh(&BoxConfig { cells: [n; 3], split: BoxSplit::Hexahedron, ..BoxConfig::default() }).unwrap()
    };
    let mut mesh = part(2);
    append(&mut mesh, &part(n), [1.0, 0.0, 0.0]);
    mesh
}

#[test]
fn hanging_nodes_of_squares_and_cubes_are_refused() {
    let merge = CheckConfig { merge_duplicates: true, ..Default::default() };
    for hanging in [hanging_squares, hanging_cubes] {
        for n in [1, 3, 4] {
            let error = check(&mut hanging(n), &merge).unwrap_err();
            assert!(matches!(error, CheckError::OverlappingFacets { .. }), "{n}: {error}");
        }
        check(&mut hanging(2), &merge).unwrap();
        check(&mut hanging(2), &CheckConfig::default()).unwrap();
    }
}

#[test]
fn parts_that_touch_in_an_edge_or_a_node_are_not_refused() {
    for (shift, n_pinched) in [([1.0, 1.0, 0.0], 2), ([1.0, 1.0, 1.0], 0)] {
        let mut mesh = cube(2);
        append(&mut mesh, &cube(2), shift);
        let report = check(&mut mesh, &CheckConfig { merge_duplicates: true, ..Default::default() }).unwrap();
        assert_eq!((report.n_pinched, report.n_components), (n_pinched, 1), "{shift:?}");
        assert!(report.n_merged > 0);
    }
    let mut mesh = square(&SquareConfig::default()).unwrap();
    append(&mut mesh, &square(&SquareConfig::default()).unwrap(), [1.0, 1.0, 0.0]);
    let report = check(&mut mesh, &CheckConfig { merge_duplicates: true, ..Default::default() }).unwrap();
    assert_eq!(report.n_pinched, 1);
}

#[test]
fn a_removed_cell_leaves_a_hole_that_the_report_shows() {
    let mut mesh = cube(4);
    let interior = |cell: &[u32], mesh: &Mesh| {
        cell.iter().all(|&n| mesh.points[n as usize].iter().all(|&x| x > 0.0 && x < 1.0))
    };
    let cell = (0..mesh.n_cells()).find(|&c| interior(mesh.cell(c), &mesh)).unwrap();
    mesh.cells.drain(4 * cell..4 * cell + 4);
    let report = checked(&mut mesh);
    assert_eq!((report.n_boundary_components, report.boundary.len()), (2, 6 * 32 + 4));
}

#[test]
fn components_are_counted_and_numbered_by_their_smallest_node() {
    let mut mesh = cube(1);
    append(&mut mesh, &cube(2), [3.0, 0.0, 0.0]);
    mesh.points.insert(0, [7.0; 3]);
    mesh.cells.iter_mut().for_each(|node| *node += 1);
    let parts = components(&mesh);
    assert_eq!(parts.count, 2);
    assert_eq!(parts.of_node[0], u32::MAX);
    assert!(parts.of_node[1..9].iter().all(|&part| part == 0));
    assert!(parts.of_node[9..].iter().all(|&part| part == 1));
}

#[test]
fn settings_without_meaning_and_broken_arrays_are_refused() {
    let bad = CheckConfig { tolerance: f64::NAN, ..CheckConfig::default() };
    assert!(matches!(check(&mut cube(1), &bad), Err(CheckError::Setting { field: "tolerance", .. })));
    let mut mesh = cube(1);
    mesh.cells[5] = 99;
    assert!(matches!(refusal(&mut mesh), CheckError::Invalid(_)));
}

#[test]
fn the_report_is_the_same_at_one_two_and_three_threads() {
    let mesh = cube(9);
    let report = |threads| {
        let pool = femtile_device::Cpu::new(threads).unwrap();
        pool.install(|| checked(&mut mesh.clone()))
    };
    assert_eq!(report(1), report(2));
    assert_eq!(report(1), report(3));
}

/// The mesh with nodes and cells renumbered and the nodes of each cell in another order.
fn shuffled(mesh: &Mesh, seed: u64) -> Mesh {
    let mut state = seed;
    let mut random = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as usize % n
    };
    let mut permutation = |n: usize| {
        let mut order: Vec<u32> = (0..n as u32).collect();
        (1..n).for_each(|i| order.swap(i, random(i + 1)));
        order
    };
    let (nodes, cells) = (permutation(mesh.n_nodes()), permutation(mesh.n_cells()));
    let local = permutation(mesh.kind.n_nodes());
    let mut result = mesh.clone();
    for (old, &new) in nodes.iter().enumerate() {
        result.points[new as usize] = mesh.points[old];
    }
    let renamed = |cell: u32| local.iter().map(move |&i| (cell, i));
    result.cells = cells
        .iter()
        .flat_map(|&cell| renamed(cell))
        .map(|(cell, i)| nodes[mesh.cell(cell as usize)[i as usize] as usize])
        .collect();
    result.facets.nodes.iter_mut().for_each(|node| *node = nodes[*node as usize]);
    result
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn numbering_does_not_change_the_report(seed: u64, cells in [1usize..5, 1..4, 1..6], five: bool) {
        let split = if five { BoxSplit::Five } else { BoxSplit::Kuhn };
        let mesh = box_mesh(&BoxConfig { cells, split, ..BoxConfig::default() }).unwrap();
        let (mut first, mut second) = (mesh.clone(), shuffled(&mesh, seed));
        let (a, b) = (checked(&mut first), checked(&mut second));
        prop_assert!((a.volume - b.volume).abs() < 1e-13);
        prop_assert!((a.worst_quality - b.worst_quality).abs() < 1e-13);
        let counts = |r: &CheckReport| [
            r.n_nodes, r.n_cells, r.n_orphans, r.n_duplicate_nodes, r.n_components, r.boundary.len(),
            r.n_boundary_components, r.n_pinched, r.n_tagged_inside, r.n_crack_facets,
        ];
        prop_assert_eq!(counts(&a), counts(&b));
    }

    #[test]
    fn numbering_does_not_hide_clashing_diagonals(seed: u64, n in 1usize..4) {
        let error = refusal(&mut shuffled(&clashing(n), seed));
        let overlapping = matches!(error, CheckError::OverlappingFacets { .. });
        prop_assert!(overlapping, "{}", error);
    }
}
