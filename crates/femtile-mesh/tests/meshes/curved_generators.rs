//! Generated meshes of quadrilaterals and hexahedra, straight and curved: soundness, tags, volumes that converge.

use std::f64::consts::PI;

use femtile_mesh::check::{CheckConfig, CheckReport, boundary_facets, check};
use femtile_mesh::generate::{
    BoxConfig, BoxSplit, DeformConfig, HexahedralBallConfig, LShape, LShapeConfig, ShellConfig, SquareConfig,
    SquareSplit, box_mesh, deform, hexahedral_ball, l_shape, shell, square,
};
use femtile_mesh::refine::uniform;
use femtile_mesh::{Mesh, MeshError};

/// Checks the mesh, that no repair was needed and that tags cover exactly the boundary, outwards.
fn sound(mesh: &Mesh) -> CheckReport {
    let mut copy = mesh.clone();
    let report = check(&mut copy, &CheckConfig::default()).unwrap();
    assert_eq!(report.warnings, Vec::<String>::new());
    assert_eq!(&copy, mesh);
    let n = mesh.kind.facet_kind().unwrap().n_nodes();
    let rotated = |nodes: &[u32]| {
        let mut facets: Vec<Vec<u32>> = nodes.chunks(n).map(<[u32]>::to_vec).collect();
        for facet in facets.iter_mut().filter(|_| n > 2) {
            let first = (0..n).min_by_key(|&i| facet[i]).unwrap();
            facet.rotate_left(first);
        }
        facets.sort();
        facets
    };
    assert!(rotated(&boundary_facets(mesh).nodes) == rotated(&mesh.facets.nodes));
    assert_corners_are_where_nodes_are(mesh);
    report
}

fn assert_corners_are_where_nodes_are(mesh: &Mesh) {
    let Some(curved) = &mesh.curved else { return };
    let (g, row) = (curved.order, curved.order + 1);
    for (cell, points) in curved.cells.chunks(curved.n_points(mesh.dimension())).enumerate() {
        for (corner, &node) in mesh.cell(cell).iter().enumerate() {
            let (i, j, k) = (usize::from(corner % 4 % 3 != 0), corner % 4 / 2, corner / 4);
            let point = curved.points[points[g * (i + row * (j + row * k))] as usize];
            let node = mesh.points[node as usize];
            assert!(
                (0..3).all(|d| (point[d] - node[d]).abs() < 1e-14),
                "{cell} {corner}: {point:?} {node:?}"
            );
        }
    }
}

fn order_of(errors: [f64; 2]) -> f64 {
    (errors[0] / errors[1]).abs().log2()
}

#[test]
fn shells_are_sound_and_their_volumes_converge() {
    let make =
        |cells, order| shell(&ShellConfig { inner: 0.5, outer: 1.25, cells, layers: cells, order }).unwrap();
    let exact = 4.0 / 3.0 * PI * (1.25f64.powi(3) - 0.125);
    for order in 1..=4 {
        let errors = [2, 4].map(|cells| {
            let report = sound(&make(cells, order));
            assert_eq!((report.n_components, report.n_boundary_components), (1, 2));
            assert!(report.worst_quality > 0.5, "{report:?}");
            report.volume - exact
        });
        assert!(order_of(errors) > order as f64 + 0.7, "order {order}: {errors:?}");
    }
    let mesh = make(3, 3);
    assert_eq!((mesh.n_cells(), mesh.n_nodes()), (6 * 27, 4 * 56));
    for (facet, &tag) in mesh.facets.tags.iter().enumerate() {
        let radius = if mesh.tag_names[&(2, tag)] == "inner" { 0.5 } else { 1.25 };
        for &node in mesh.facet(facet) {
            let r = mesh.points[node as usize].iter().map(|x| x * x).sum::<f64>().sqrt();
            assert!((r - radius).abs() < 1e-14);
        }
    }
}

#[test]
fn balls_of_hexahedra_are_sound_and_their_volumes_converge() {
    let make = |cells, order| {
        hexahedral_ball(&HexahedralBallConfig { radius: 2.0, cells, layers: cells, order }).unwrap()
    };
    let exact = 4.0 / 3.0 * PI * 8.0;
    for order in 1..=3 {
        let errors = [2, 4].map(|cells| {
            let report = sound(&make(cells, order));
            assert_eq!((report.n_components, report.n_boundary_components), (1, 1));
            assert!(report.worst_quality > 0.3, "{report:?}");
            report.volume - exact
        });
        assert!(order_of(errors) > order as f64 + 0.7, "order {order}: {errors:?}");
    }
    assert_eq!((make(2, 1).n_cells(), make(2, 1).n_nodes()), (8 + 6 * 8, 27 + 2 * 26));
}

#[test]
fn l_shapes_are_sound_and_their_sides_are_named() {
    for (shape, volume, n_parts) in
        [(LShape::Plane, 3.0, 5), (LShape::Extruded, 3.0, 7), (LShape::Corner, 7.0, 7)]
    {
        let mesh = l_shape(&LShapeConfig { shape, cells: 3 }).unwrap();
        let report = sound(&mesh);
        assert!((report.volume - volume).abs() < 1e-12 && report.worst_quality > 0.999);
        assert_eq!(mesh.tag_names.len(), n_parts);
        let dimension = mesh.dimension();
        let tagged = |name: &str| {
            let names = &mesh.tag_names;
            mesh.facets.tags.iter().filter(|&&tag| names[&(dimension - 1, tag)] == name).count()
        };
        let expected = match shape {
            LShape::Plane => [6, 3, 6],
            LShape::Extruded => [18, 9, 18],
            LShape::Corner => [36, 27, 27],
        };
        assert_eq!([tagged("xmin"), tagged("xmax"), tagged("notch")], expected, "{shape:?}");
    }
}

#[test]
fn deformed_boxes_keep_their_sides_and_their_volume_converges() {
    let cube = |n, order| {
        let split = BoxSplit::Hexahedron;
        let mut mesh = box_mesh(&BoxConfig { cells: [n; 3], split, ..BoxConfig::default() }).unwrap();
        deform(&mut mesh, &DeformConfig { order, ..DeformConfig::default() }).unwrap();
        mesh
    };
    for order in 1..=4 {
        let report = sound(&cube(3, order));
        assert!((report.volume - 1.0).abs() < 1e-12 && report.worst_quality > 0.3, "{report:?}");
    }
    let plane = |order| {
        let split = SquareSplit::Quadrilateral;
        let mut mesh = square(&SquareConfig { cells: [4; 2], split, ..SquareConfig::default() }).unwrap();
        deform(&mut mesh, &DeformConfig { amplitude: 0.2, order }).unwrap();
        mesh
    };
    let curved = plane(3);
    assert!((sound(&curved).volume - 1.0).abs() < 1e-13);
    let middle = curved.points[12];
    assert!((middle[0] - 0.7).abs() < 1e-15 && (middle[1] - 0.7).abs() < 1e-15 && middle[2] == 0.0);
    let message = |result: Result<(), MeshError>| result.unwrap_err().to_string();
    let mut mesh = cube(1, 1);
    assert!(message(deform(&mut mesh, &DeformConfig { amplitude: 0.3, order: 1 })).contains("amplitude: "));
    assert!(message(deform(&mut mesh, &DeformConfig { amplitude: 0.1, order: 10 })).contains("order: 10"));
    let mut simplices = box_mesh(&BoxConfig::default()).unwrap();
    assert!(
        message(deform(&mut simplices, &DeformConfig { amplitude: 0.1, order: 2 })).contains("tetrahedron")
    );
    deform(&mut simplices, &DeformConfig::default()).unwrap();
    sound_tetrahedra(&simplices);
}

fn sound_tetrahedra(mesh: &Mesh) {
    let report = check(&mut mesh.clone(), &CheckConfig::default()).unwrap();
    assert_eq!((report.n_flipped, report.warnings.len()), (0, 0));
}

#[test]
fn impossible_settings_are_refused_before_any_work() {
    let message = |result: Result<Mesh, MeshError>| result.unwrap_err().to_string();
    let config = ShellConfig::default();
    assert!(message(shell(&ShellConfig { outer: 0.5, ..config.clone() })).contains("outer: 0.5"));
    assert!(message(shell(&ShellConfig { inner: f64::NAN, ..config.clone() })).contains("inner: "));
    assert!(message(shell(&ShellConfig { layers: 0, ..config.clone() })).contains("cells: "));
    assert!(message(shell(&ShellConfig { cells: 1 << 20, ..config.clone() })).contains("nodes"));
    assert!(message(shell(&ShellConfig { order: 0, ..config })).contains("order: 0"));
    let config = HexahedralBallConfig::default();
    assert!(message(hexahedral_ball(&HexahedralBallConfig { radius: -1.0, ..config })).contains("radius: "));
    assert!(message(l_shape(&LShapeConfig { cells: 0, shape: LShape::Corner })).contains("cells: "));
    assert!(message(l_shape(&LShapeConfig { cells: 1 << 40, shape: LShape::Plane })).contains("nodes"));
}

#[test]
fn children_of_curved_cells_are_together_the_same_shape() {
    let ball = hexahedral_ball(&HexahedralBallConfig { radius: 1.0, cells: 1, layers: 1, order: 3 }).unwrap();
    let before = sound(&ball);
    let fine = uniform(&ball).unwrap();
    let after = sound(&fine);
    assert_eq!((fine.n_cells(), fine.curved.as_ref().unwrap().order), (56, 3));
    assert!((after.volume - before.volume).abs() < 1e-13);
    assert_eq!(fine.curved.as_ref().unwrap().points[..8], ball.curved.as_ref().unwrap().points[..8]);
    // As many points as the same blocks with twice the cells.
    let twice =
        hexahedral_ball(&HexahedralBallConfig { radius: 1.0, cells: 2, layers: 2, order: 3 }).unwrap();
    assert_eq!(fine.n_nodes(), twice.n_nodes());
    assert_eq!(fine.curved.unwrap().points.len(), twice.curved.unwrap().points.len());
}

#[test]
fn curved_cells_that_are_turned_over_are_turned_back() {
    let mesh = shell(&ShellConfig { cells: 1, layers: 1, order: 2, ..ShellConfig::default() }).unwrap();
    let volume = sound(&mesh).volume;
    let mut mirrored = mesh;
    mirrored.points.iter_mut().for_each(|point| point[0] = -point[0]);
    mirrored.curved.as_mut().unwrap().points.iter_mut().for_each(|point| point[0] = -point[0]);
    let report = check(&mut mirrored, &CheckConfig::default()).unwrap();
    assert_eq!((report.n_flipped, report.volume), (6, volume));
    assert_corners_are_where_nodes_are(&mirrored);
    assert_eq!(check(&mut mirrored, &CheckConfig::default()).unwrap().n_flipped, 0);
}
