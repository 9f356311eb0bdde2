//! Boxes and rectangles: counts, volumes, orientation, tags.

use femtile_mesh::check::boundary_facets;
use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile_mesh::{CellKind, Mesh};

const SIZES: [[usize; 3]; 5] = [[1, 1, 1], [2, 1, 3], [5, 4, 3], [7, 1, 1], [3, 11, 2]];

fn corner_box(cells: [usize; 3], split: BoxSplit) -> Mesh {
    box_mesh(&BoxConfig { lower: [-1.0, 0.25, 2.0], upper: [2.0, 1.75, 2.5], cells, split }).unwrap()
}

fn sorted(nodes: &[u32]) -> Vec<u32> {
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    nodes
}

fn assert_tags_cover_exactly_the_boundary(mesh: &Mesh) {
    let boundary = boundary_facets(mesh);
    let mut found: Vec<_> = (0..boundary.len()).map(|i| sorted(boundary.facet(i))).collect();
    let mut tagged: Vec<_> = (0..mesh.facets.tags.len()).map(|i| sorted(mesh.facet(i))).collect();
    found.sort();
    tagged.sort();
    assert_eq!(found, tagged);
}

#[test]
fn every_tetrahedron_of_a_box_is_positive_and_they_fill_it() {
    for split in [BoxSplit::Kuhn, BoxSplit::Five] {
        for cells in SIZES {
            let mesh = corner_box(cells, split);
            let volumes: Vec<f64> = (0..mesh.n_cells()).map(|cell| mesh.signed_measure(cell)).collect();
            assert!(volumes.iter().all(|&v| v > 0.0), "{split:?} {cells:?}");
            assert!((volumes.iter().sum::<f64>() - 2.25).abs() < 1e-12);
            let per_cube = if split == BoxSplit::Kuhn { 6 } else { 5 };
            assert_eq!(mesh.n_cells(), per_cube * cells.iter().product::<usize>());
        }
    }
}

#[test]
fn the_boundary_of_a_box_is_its_surface_and_nothing_else() {
    for split in [BoxSplit::Kuhn, BoxSplit::Five, BoxSplit::Hexahedron] {
        for [x, y, z] in SIZES {
            let squares = 2 * (x * y + y * z + z * x);
            let expected = if split == BoxSplit::Hexahedron { squares } else { 2 * squares };
            let mesh = corner_box([x, y, z], split);
            assert_eq!(boundary_facets(&mesh).len(), expected, "{split:?} {x} {y} {z}");
            assert_tags_cover_exactly_the_boundary(&mesh);
        }
    }
}

#[test]
fn boundary_facets_come_in_order_and_point_outwards() {
    let mesh = corner_box([5, 3, 2], BoxSplit::Five);
    let boundary = boundary_facets(&mesh);
    let order: Vec<_> = boundary.cells.iter().zip(&boundary.local).collect();
    assert!(order.is_sorted());
    let mut volume = 0.0;
    for facet in 0..boundary.len() {
        let [a, b, c] = std::array::from_fn(|i| mesh.points[boundary.facet(facet)[i] as usize]);
        // The divergence theorem for the field (x, 0, 0).
        let normal_x = 0.5 * ((b[1] - a[1]) * (c[2] - a[2]) - (b[2] - a[2]) * (c[1] - a[1]));
        volume += normal_x * (a[0] + b[0] + c[0]) / 3.0;
    }
    assert!((volume - 2.25).abs() < 1e-12, "{volume}");
}

#[test]
fn each_side_of_a_box_lies_where_its_name_says() {
    for split in [BoxSplit::Kuhn, BoxSplit::Five, BoxSplit::Hexahedron] {
        let mesh = corner_box([2, 3, 4], split);
        for (facet, &tag) in mesh.facets.tags.iter().enumerate() {
            let (axis, value) = match mesh.tag_names[&(2, tag)].as_str() {
                "xmin" => (0, -1.0),
                "xmax" => (0, 2.0),
                "ymin" => (1, 0.25),
                "ymax" => (1, 1.75),
                "zmin" => (2, 2.0),
                "zmax" => (2, 2.5),
                name => panic!("unexpected side {name}"),
            };
            assert!(mesh.facet(facet).iter().all(|&node| mesh.points[node as usize][axis] == value));
        }
    }
}

#[test]
fn a_rectangle_is_filled_tagged_and_well_oriented() {
    for cells in [[1, 1], [1, 5], [7, 2], [13, 11]] {
        let config =
            SquareConfig { lower: [-2.0, 1.0], upper: [1.0, 1.5], cells, split: SquareSplit::Triangles };
        let mesh = square(&config).unwrap();
        assert_eq!(mesh.n_cells(), 2 * cells[0] * cells[1]);
        let areas: Vec<f64> = (0..mesh.n_cells()).map(|cell| mesh.signed_measure(cell)).collect();
        assert!(areas.iter().all(|&a| a > 0.0));
        assert!((areas.iter().sum::<f64>() - 1.5).abs() < 1e-13);
        assert_tags_cover_exactly_the_boundary(&mesh);
        let quadrilaterals = square(&SquareConfig { split: SquareSplit::Quadrilateral, ..config }).unwrap();
        assert_eq!(quadrilaterals.kind, CellKind::Quadrilateral);
        assert_eq!(quadrilaterals.n_cells(), cells[0] * cells[1]);
        assert_tags_cover_exactly_the_boundary(&quadrilaterals);
    }
}

#[test]
fn impossible_boxes_are_refused_with_the_reason() {
    let message = |config: BoxConfig| box_mesh(&config).unwrap_err().to_string();
    let unit = BoxConfig::default();
    assert!(message(BoxConfig { cells: [3, 0, 3], ..unit.clone() }).contains("at least one"));
    assert!(message(BoxConfig { lower: [0.0, f64::NAN, 0.0], ..unit.clone() }).contains("not finite"));
    assert!(message(BoxConfig { upper: [1.0, -1.0, 1.0], ..unit.clone() }).contains("does not lie beyond"));
    assert!(message(BoxConfig { cells: [1999; 3], ..unit.clone() }).contains("8000000000 nodes"));
    assert!(message(BoxConfig { cells: [950; 3], ..unit.clone() }).contains("5144250000 cells"));
    assert!(message(BoxConfig { cells: [usize::MAX; 3], ..unit }).contains("can be numbered"));
    let flat = SquareConfig { cells: [0, 1], ..SquareConfig::default() };
    assert!(square(&flat).unwrap_err().to_string().contains("at least one"));
}
