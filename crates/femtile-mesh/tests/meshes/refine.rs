//! Uniform refinement: counts, volume, conformity, what is inherited.

use femtile_mesh::check::{CheckConfig, CheckReport, boundary_facets, check};
use femtile_mesh::generate::{
    BallConfig, BoxConfig, BoxSplit, SquareConfig, SquareSplit, ball, box_mesh, square,
};
use femtile_mesh::refine::uniform;
use femtile_mesh::{CellKind, Field, Mesh};
use proptest::prelude::*;

fn sound(mesh: &Mesh) -> CheckReport {
    let mut copy = mesh.clone();
    let report = check(&mut copy, &CheckConfig::default()).unwrap();
    assert_eq!((report.n_flipped, report.n_tagged_inside, report.warnings.len()), (0, 0, 0));
    assert_eq!(report.boundary.len(), mesh.facets.tags.len());
    report
}

#[test]
fn a_refined_box_has_the_nodes_of_the_box_with_twice_the_cells() {
    for cells in [[1, 1, 1], [2, 3, 1], [3, 2, 5]] {
        let make = |cells| box_mesh(&BoxConfig { cells, ..BoxConfig::default() }).unwrap();
        let fine = uniform(&make(cells)).unwrap();
        let other = make(cells.map(|n| 2 * n));
        let sorted = |mesh: &Mesh| {
            let mut points: Vec<[i64; 3]> =
                mesh.points.iter().map(|p| p.map(|x| (x * 1e9).round() as i64)).collect();
            points.sort_unstable();
            points
        };
        assert_eq!(sorted(&fine), sorted(&other));
        assert_eq!(fine.n_cells(), other.n_cells());
        let (a, b) = (sound(&fine), sound(&other));
        assert!((a.volume - 1.0).abs() < 1e-13);
        if cells == [1, 1, 1] {
            // Kuhn's tetrahedra stay similar.
            assert!((a.worst_quality - b.worst_quality).abs() < 1e-12);
        }
    }
}

#[test]
fn kuhn_tetrahedra_do_not_lose_quality_however_often_they_are_refined() {
    let mut mesh = box_mesh(&BoxConfig { cells: [1; 3], ..BoxConfig::default() }).unwrap();
    let quality = sound(&mesh).worst_quality;
    for _ in 0..4 {
        mesh = uniform(&mesh).unwrap();
        assert!((sound(&mesh).worst_quality - quality).abs() < 1e-12);
    }
}

#[test]
fn a_refined_square_is_sound_and_keeps_its_sides() {
    let mesh = square(&SquareConfig { cells: [3, 5], ..SquareConfig::default() }).unwrap();
    let fine = uniform(&uniform(&mesh).unwrap()).unwrap();
    assert_eq!((fine.n_nodes(), fine.n_cells()), (13 * 21, 16 * 30));
    assert!((sound(&fine).volume - 1.0).abs() < 1e-14);
    for (facet, &tag) in fine.facets.tags.iter().enumerate() {
        let expected = [("xmin", 0, 0.0), ("xmax", 0, 1.0), ("ymin", 1, 0.0), ("ymax", 1, 1.0)];
        let (name, axis, value) = expected[tag as usize - 1];
        assert_eq!(fine.tag_names[&(1, tag)], name);
        assert!(fine.facet(facet).iter().all(|&node| fine.points[node as usize][axis] == value));
    }
}

#[test]
fn tagged_facets_stay_facets_of_the_boundary_with_their_direction() {
    let fine = uniform(&ball(&BallConfig { radius: 1.0, h: 0.5 }).unwrap()).unwrap();
    let boundary = boundary_facets(&fine);
    let rotated = |facet: &[u32]| {
        let first = (0..3).min_by_key(|&i| facet[i]).unwrap();
        [facet[first], facet[(first + 1) % 3], facet[(first + 2) % 3]]
    };
    let mut found: Vec<_> = (0..boundary.len()).map(|i| rotated(boundary.facet(i))).collect();
    let mut tagged: Vec<_> = (0..boundary.len()).map(|i| rotated(fine.facet(i))).collect();
    found.sort_unstable();
    tagged.sort_unstable();
    assert_eq!(found, tagged);
}

#[test]
fn linear_fields_stay_linear_and_cells_inherit() {
    let mut mesh = box_mesh(&BoxConfig { cells: [2, 1, 3], ..BoxConfig::default() }).unwrap();
    let linear = |p: &[f64; 3]| [1.0 + 2.0 * p[0] - p[1], 0.25 * p[2]];
    let values = mesh.points.iter().flat_map(linear).collect();
    mesh.node_fields.insert("linear".into(), Field { n_components: 2, values });
    mesh.cell_tags = (0..mesh.n_cells() as i32).collect();
    let values = (0..3 * mesh.n_cells()).map(|i| i as f64).collect();
    mesh.cell_fields.insert("number".into(), Field { n_components: 3, values });
    let fine = uniform(&mesh).unwrap();
    fine.validate().unwrap();
    for (node, values) in fine.node_fields["linear"].values.chunks(2).enumerate() {
        let exact = linear(&fine.points[node]);
        assert!((0..2).all(|i| (values[i] - exact[i]).abs() < 1e-15));
    }
    for cell in 0..fine.n_cells() {
        assert_eq!(fine.cell_tags[cell], cell as i32 / 8);
        let values = &fine.cell_fields["number"].values[3 * cell..3 * cell + 3];
        assert_eq!(values, &mesh.cell_fields["number"].values[cell / 8 * 3..cell / 8 * 3 + 3]);
    }
}

#[test]
fn what_cannot_be_refined_is_refused() {
    let mut mesh = box_mesh(&BoxConfig { cells: [2; 3], ..BoxConfig::default() }).unwrap();
    mesh.facets.nodes.extend([0, 1, 26]);
    mesh.facets.tags.push(9);
    assert!(uniform(&mesh).unwrap_err().to_string().contains("1–26"));
    let segments = Mesh::new(vec![[0.0; 3], [1.0; 3]], CellKind::Segment, vec![0, 1]).unwrap();
    assert!(uniform(&segments).unwrap_err().to_string().contains("segment"));
    let split = BoxSplit::Hexahedron;
    let mut mesh = box_mesh(&BoxConfig { cells: [2; 3], split, ..BoxConfig::default() }).unwrap();
    mesh.facets.nodes.extend([0, 1, 26, 25]);
    mesh.facets.tags.push(9);
    assert!(uniform(&mesh).unwrap_err().to_string().contains("[1, 26]"));
}

#[test]
fn refined_boxes_of_boxes_are_the_boxes_with_twice_the_cells() {
    let split = BoxSplit::Hexahedron;
    let make = |cells| box_mesh(&BoxConfig { cells, split, ..BoxConfig::default() }).unwrap();
    let mut coarse = make([2, 3, 1]);
    coarse.cell_tags = vec![1, 2, 3, 4, 5, 6];
    let product = |p: &[f64; 3]| [p[0] * p[1] * p[2], p[0] - 2.0 * p[2]];
    let values: Vec<f64> = coarse.points.iter().flat_map(product).collect();
    coarse.node_fields.insert("product".into(), Field { n_components: 2, values });
    let (fine, other) = (uniform(&coarse).unwrap(), make([4, 6, 2]));
    assert_eq!((fine.n_nodes(), fine.n_cells()), (other.n_nodes(), other.n_cells()));
    assert_eq!(fine.points[..coarse.n_nodes()], coarse.points);
    let report = sound(&fine);
    assert!((report.volume - 1.0).abs() < 1e-13 && report.n_components == 1);
    assert!((0..48).all(|cell| fine.cell_tags[cell] == 1 + cell as i32 / 8));
    for (p, found) in fine.points.iter().zip(fine.node_fields["product"].values.chunks(2)) {
        assert!((0..2).all(|c| (found[c] - product(p)[c]).abs() < 1e-14));
    }
    let squares =
        SquareConfig { cells: [3, 2], split: SquareSplit::Quadrilateral, ..SquareConfig::default() };
    let fine = uniform(&square(&squares).unwrap()).unwrap();
    assert_eq!((fine.n_nodes(), fine.n_cells(), fine.facets.tags.len()), (35, 24, 20));
    assert!((sound(&fine).volume - 1.0).abs() < 1e-13);
}

#[test]
fn orphan_nodes_stay_where_they_are() {
    let points = vec![[9.0; 3], [0.; 3], [1., 0., 0.], [0., 1., 0.], [8.0; 3], [0., 0., 1.]];
    let mesh = Mesh::new(points, CellKind::Tetrahedron, vec![1, 2, 3, 5]).unwrap();
    let fine = uniform(&mesh).unwrap();
    assert_eq!((fine.n_nodes(), fine.n_cells()), (12, 8));
    assert_eq!(fine.points[..6], mesh.points);
}

proptest! {
    #[test]
    fn any_tetrahedron_keeps_its_volume_and_its_orientation(
        coordinates in proptest::array::uniform12(-1.0f64..1.0)
    ) {
        let points = coordinates.chunks(3).map(|p| [p[0], p[1], p[2]]).collect();
        let mesh = Mesh::new(points, CellKind::Tetrahedron, vec![0, 1, 2, 3]).unwrap();
        let volume = mesh.signed_measure(0);
        let fine = uniform(&mesh).unwrap();
        prop_assert_eq!((fine.n_nodes(), fine.n_cells()), (10, 8));
        for cell in 0..8 {
            prop_assert!((fine.signed_measure(cell) - volume / 8.0).abs() < 1e-14);
        }
        prop_assert_eq!(boundary_facets(&fine).len(), 16);
    }
}
