//! The short check of generated meshes finds what the full check finds.

use femtile_mesh::Mesh;
use femtile_mesh::check::{
    CheckConfig, CheckReport, boundary_facets, check, check_generated, check_generated_interruptible,
};
use femtile_mesh::generate::{
    BallConfig, BoxConfig, BoxSplit, CylinderConfig, DeformConfig, HexahedralBallConfig, LShape,
    LShapeConfig, ShellConfig, SquareConfig, SquareSplit, VentricleConfig, ball, box_mesh, cylinder, deform,
    hexahedral_ball, l_shape, shell, square, ventricle,
};
use femtile_mesh::refine::uniform;

/// Asserts that both checks leave the mesh as it is and report the same, field by field, and that neither finds anything.
fn assert_alike(name: &str, mesh: &Mesh) {
    let config = CheckConfig { sliver_quality: 0.0, ..CheckConfig::default() };
    let (mut first, mut second) = (mesh.clone(), mesh.clone());
    let full = check(&mut first, &config).unwrap();
    let short = check_generated(&mut second, &config).unwrap();
    assert!(first == *mesh && second == *mesh, "{name}");
    assert_eq!(short, full, "{name}");
    assert_eq!(*short.boundary, boundary_facets(mesh), "{name}");
    assert_eq!(short.boundary.len(), mesh.facets.tags.len(), "{name}");
    let nothing = CheckReport {
        n_orphans: 0,
        n_flipped: 0,
        n_merged: 0,
        n_duplicate_nodes: 0,
        n_crack_facets: 0,
        n_components: 1,
        n_gaps: 0,
        n_pinched: 0,
        n_tagged_inside: 0,
        warnings: Vec::new(),
        ..short.clone()
    };
    assert_eq!(short, nothing, "{name}");
}

/// As [`assert_alike`], also of the mesh refined and scaled.
fn assert_alike_when_refined(name: &str, mesh: &Mesh) {
    assert_alike(name, mesh);
    let mut fine = uniform(mesh).unwrap();
    assert_alike(&format!("{name}, refined"), &fine);
    fine.scale(1e-3).unwrap();
    assert_alike(&format!("{name}, refined and scaled"), &fine);
}

#[test]
fn both_checks_of_boxes_and_squares_report_the_same() {
    let (lower, upper) = ([-1.0, 0.5, 2.0], [1.0, 0.75, 2.0 + 1e-6]);
    for split in [BoxSplit::Kuhn, BoxSplit::Five, BoxSplit::Hexahedron] {
        for cells in [[1, 1, 1], [2, 1, 1], [1, 3, 2], [5, 4, 7], [13, 2, 11]] {
            let mut mesh = box_mesh(&BoxConfig { cells, split, ..BoxConfig::default() }).unwrap();
            assert_alike_when_refined(&format!("{split:?} {cells:?}"), &mesh);
            assert_alike("flat", &box_mesh(&BoxConfig { cells, split, lower, upper }).unwrap());
            deform(&mut mesh, &DeformConfig { amplitude: 0.2, order: 1 }).unwrap();
            assert_alike_when_refined(&format!("deformed {split:?} {cells:?}"), &mesh);
        }
    }
    for split in [SquareSplit::Triangles, SquareSplit::Quadrilateral] {
        for cells in [[1, 1], [3, 1], [2, 5], [17, 11]] {
            let mut mesh = square(&SquareConfig { cells, split, ..SquareConfig::default() }).unwrap();
            assert_alike_when_refined(&format!("{split:?} {cells:?}"), &mesh);
            deform(&mut mesh, &DeformConfig { amplitude: -0.2, order: 1 }).unwrap();
            assert_alike_when_refined(&format!("deformed {split:?} {cells:?}"), &mesh);
        }
    }
}

#[test]
fn both_checks_of_curved_cells_report_the_same() {
    let split = BoxSplit::Hexahedron;
    let mut cube = box_mesh(&BoxConfig { cells: [3, 2, 5], split, ..BoxConfig::default() }).unwrap();
    deform(&mut cube, &DeformConfig { amplitude: 0.15, order: 3 }).unwrap();
    assert_alike_when_refined("box", &cube);
    let split = SquareSplit::Quadrilateral;
    let mut plane = square(&SquareConfig { cells: [3, 7], split, ..SquareConfig::default() }).unwrap();
    deform(&mut plane, &DeformConfig { amplitude: 0.2, order: 2 }).unwrap();
    assert_alike_when_refined("square", &plane);
    for (cells, layers, order) in [(1, 1, 1), (1, 2, 2), (2, 1, 3), (5, 3, 1)] {
        let name = format!("{cells} {layers} {order}");
        let config = ShellConfig { inner: 0.5, outer: 1.25, cells, layers, order };
        assert_alike_when_refined(&format!("shell {name}"), &shell(&config).unwrap());
        let config = HexahedralBallConfig { radius: 2.0, cells, layers, order };
        assert_alike_when_refined(&format!("ball {name}"), &hexahedral_ball(&config).unwrap());
    }
}

#[test]
fn both_checks_of_round_and_notched_tetrahedral_meshes_report_the_same() {
    for h in [2.0, 0.7, 0.31, 0.17] {
        assert_alike(&format!("ball {h}"), &ball(&BallConfig { radius: 1.0, h }).unwrap());
        let config = CylinderConfig { radius: 1.0, height: 1.7, h };
        assert_alike(&format!("cylinder {h}"), &cylinder(&config).unwrap());
    }
    assert_alike_when_refined("ball", &ball(&BallConfig { radius: 3.0, h: 1.1 }).unwrap());
    let config = CylinderConfig { radius: 0.5, height: 3.0, h: 0.4 };
    assert_alike_when_refined("cylinder", &cylinder(&config).unwrap());
    for h_mm in [30.0, 5.0, 2.3, 1.4] {
        assert_alike(&format!("ventricle {h_mm}"), &ventricle(&VentricleConfig { h_mm }).unwrap());
    }
    assert_alike_when_refined("ventricle", &ventricle(&VentricleConfig { h_mm: 3.0 }).unwrap());
    for shape in [LShape::Plane, LShape::Extruded, LShape::Corner] {
        for cells in [1, 2, 5] {
            let mesh = l_shape(&LShapeConfig { shape, cells }).unwrap();
            assert_alike_when_refined(&format!("{shape:?} {cells}"), &mesh);
        }
    }
}

#[test]
fn the_short_check_does_not_depend_on_the_number_of_threads() {
    let mesh = box_mesh(&BoxConfig { cells: [17, 13, 11], ..BoxConfig::default() }).unwrap();
    let report = |threads| {
        let pool = femtile_device::Cpu::new(threads).unwrap();
        pool.install(|| check_generated(&mut mesh.clone(), &CheckConfig::default()).unwrap())
    };
    let first = report(1);
    assert!(first.boundary.len() == 2 * 2 * (17 * 13 + 17 * 11 + 13 * 11));
    [2, 3, 7].into_iter().for_each(|threads| assert_eq!(report(threads), first, "{threads}"));
}

#[test]
fn the_short_check_finds_nothing_less_in_meshes_that_no_generator_made() {
    let sound = box_mesh(&BoxConfig { cells: [3, 2, 2], ..BoxConfig::default() }).unwrap();
    let mut untagged = sound.clone();
    untagged.facets = Default::default();
    let mut tagged_in_part = sound.clone();
    tagged_in_part.facets.nodes.truncate(3 * 40);
    tagged_in_part.facets.tags.truncate(40);
    let mut repeated = sound.clone();
    repeated.facets.nodes.extend_from_within(..3);
    repeated.facets.tags.push(7);
    let mut inside = sound.clone();
    let [a, b, c] = [sound.cells[0], sound.cells[2], sound.cells[3]];
    inside.facets.nodes.splice(..3, [a, b, c]);
    let mut of_no_cell = sound.clone();
    of_no_cell.facets.nodes.splice(..3, [0, 3, 35]);
    let mut turned = sound.clone();
    turned.cells.swap(4, 5);
    let mut mirrored = sound.clone();
    mirrored.points.iter_mut().for_each(|point| point[0] = -point[0]);
    let mut flat = sound.clone();
    flat.points[17] = flat.points[16];
    let mut far = sound.clone();
    far.cells[8] = 99;
    let mut missing = sound.clone();
    missing.cells.truncate(4 * 71);
    let mut accepted = turned.clone();
    accepted.points[35] = [5.0, 5.0, 5.0];
    for (name, mesh) in [
        ("untagged", untagged),
        ("tagged in part", tagged_in_part),
        ("repeated", repeated),
        ("inside", inside),
        ("of no cell", of_no_cell),
        ("turned", turned),
        ("mirrored", mirrored),
        ("flat", flat),
        ("far", far),
        ("missing", missing),
        ("accepted", accepted),
    ] {
        let (mut first, mut second) = (mesh.clone(), mesh);
        let full = check(&mut first, &CheckConfig::default());
        let short = check_generated(&mut second, &CheckConfig::default());
        assert_eq!(format!("{short:?}"), format!("{full:?}"), "{name}");
        assert_eq!(first, second, "{name}");
    }
}

#[test]
fn the_short_check_ends_early_and_refuses_settings_as_the_full_one_does() {
    let mut mesh = box_mesh(&BoxConfig::default()).unwrap();
    let error = check_generated_interruptible(&mut mesh, &CheckConfig::default(), Some(&|| true));
    assert!(error.unwrap_err().to_string().contains("interrupted"));
    let config = CheckConfig { sliver_quality: -1.0, ..CheckConfig::default() };
    let full = check(&mut mesh, &config).unwrap_err().to_string();
    assert_eq!(check_generated(&mut mesh, &config).unwrap_err().to_string(), full);
}
