//! Ball, cylinder and ventricle: volumes, quality, tags, fibres.

use std::collections::BTreeSet;
use std::f64::consts::PI;

use femtile_mesh::check::{CheckConfig, CheckReport, boundary_facets, check};
use femtile_mesh::generate::{BallConfig, CylinderConfig, VentricleConfig, ball, cylinder, ventricle};
use femtile_mesh::{Mesh, MeshError};

/// Volume of an ellipsoid of revolution between its apex below and a height.
fn truncated(across: f64, along: f64, height: f64) -> f64 {
    PI * across * across * (height + along - (height.powi(3) + along.powi(3)) / (3.0 * along * along))
}

fn ventricle_volume() -> f64 {
    truncated(10.0, 20.0, 5.0) - truncated(7.0, 17.0, 5.0)
}

/// Checks the mesh and that no repair was needed.
fn sound(mesh: &Mesh) -> CheckReport {
    let mut copy = mesh.clone();
    let report = check(&mut copy, &CheckConfig::default()).unwrap();
    assert_eq!(report.warnings, Vec::<String>::new());
    assert_eq!(&copy, mesh);
    assert_eq!((report.n_components, report.n_boundary_components), (1, 1));
    assert_eq!(euler_characteristic(mesh), 1);
    assert_tags_cover_exactly_the_boundary(mesh);
    report
}

/// Nodes − edges + faces − cells; 1 for a ball.
fn euler_characteristic(mesh: &Mesh) -> i64 {
    let (mut edges, mut faces) = (BTreeSet::new(), BTreeSet::new());
    for cell in mesh.cells.chunks(4) {
        let mut cell = cell.to_vec();
        cell.sort_unstable();
        for i in 0..4 {
            let mut face = cell.clone();
            face.remove(i);
            faces.insert(face);
            (0..i).for_each(|j| {
                edges.insert((cell[j], cell[i]));
            });
        }
    }
    mesh.n_nodes() as i64 - edges.len() as i64 + faces.len() as i64 - mesh.n_cells() as i64
}

fn assert_tags_cover_exactly_the_boundary(mesh: &Mesh) {
    // Sorted only in rotation: tagged facets point outwards as well.
    let rotated = |facet: &[u32]| {
        let mut facet = facet.to_vec();
        let first = (0..3).min_by_key(|&i| facet[i]).unwrap();
        facet.rotate_left(first);
        facet
    };
    let boundary = boundary_facets(mesh);
    let mut found: Vec<_> = (0..boundary.len()).map(|i| rotated(boundary.facet(i))).collect();
    let mut tagged: Vec<_> = (0..mesh.facets.tags.len()).map(|i| rotated(mesh.facet(i))).collect();
    found.sort();
    tagged.sort();
    assert!(found == tagged);
}

fn assert_second_order(exact: f64, volumes: [f64; 3]) {
    let errors = volumes.map(|v| (exact - v).abs());
    for pair in errors.windows(2) {
        let order = (pair[0] / pair[1]).log2();
        assert!((order - 2.0).abs() < 0.2, "{errors:?} {order}");
    }
}

#[test]
fn the_ball_is_sound_and_its_volume_converges() {
    let make = |h| ball(&BallConfig { radius: 2.0, h }).unwrap();
    let reports = [0.5, 0.25, 0.125].map(|h| sound(&make(h)));
    assert_second_order(4.0 / 3.0 * PI * 8.0, [0, 1, 2].map(|i| reports[i].volume));
    for report in &reports {
        assert!(report.worst_quality > 0.3, "{report:?}");
    }
    for h in [1e9, 3.0, 1.5] {
        assert!(sound(&make(h)).worst_quality > 0.3);
    }
}

#[test]
fn the_ball_has_all_boundary_nodes_on_the_sphere() {
    let mesh = ball(&BallConfig { radius: 3.0, h: 0.7 }).unwrap();
    for &node in &mesh.facets.nodes {
        let r = mesh.points[node as usize].iter().map(|x| x * x).sum::<f64>().sqrt();
        assert!((r - 3.0).abs() < 1e-14 * 3.0);
    }
    assert_eq!(mesh.tag_names[&(2, 1)], "surface");
}

#[test]
fn the_cylinder_is_sound_and_its_volume_converges() {
    let make = |h| cylinder(&CylinderConfig { radius: 0.5, height: 2.0, h }).unwrap();
    let reports = [0.125, 0.0625, 0.03125].map(|h| sound(&make(h)));
    assert_second_order(0.5 * PI, [0, 1, 2].map(|i| reports[i].volume));
    for report in &reports {
        assert!(report.worst_quality > 0.3, "{report:?}");
    }
    sound(&make(1e9));
}

#[test]
fn the_parts_of_a_cylinder_lie_where_their_names_say() {
    let mesh = cylinder(&CylinderConfig { radius: 0.5, height: 2.0, h: 0.2 }).unwrap();
    for (facet, &tag) in mesh.facets.tags.iter().enumerate() {
        for [x, y, z] in mesh.facet(facet).iter().map(|&node| mesh.points[node as usize]) {
            let holds = match mesh.tag_names[&(2, tag)].as_str() {
                "side" => (x.hypot(y) - 0.5).abs() < 1e-15,
                "bottom" => z == 0.0,
                "top" => z == 2.0,
                name => panic!("unexpected part {name}"),
            };
            assert!(holds, "{x} {y} {z}");
        }
    }
}

#[test]
fn the_ventricle_is_sound_and_its_volume_converges() {
    let make = |h_mm| ventricle(&VentricleConfig { h_mm }).unwrap();
    let reports = [3.3375, 1.66875, 0.834375].map(|h| sound(&make(h)));
    assert_second_order(ventricle_volume(), [0, 1, 2].map(|i| reports[i].volume));
    for report in &reports {
        assert!(report.worst_quality > 0.2, "{report:?}");
    }
    for h in [100.0, 2.0, 1.0] {
        assert!(sound(&make(h)).worst_quality > 0.1, "{h}");
    }
}

#[test]
fn the_walls_of_the_ventricle_are_the_ellipsoids_and_the_plane() {
    let mesh = ventricle(&VentricleConfig { h_mm: 1.7 }).unwrap();
    for (facet, &tag) in mesh.facets.tags.iter().enumerate() {
        for [x, y, z] in mesh.facet(facet).iter().map(|&node| mesh.points[node as usize]) {
            let level = |a: f64, c: f64| ((x * x + y * y) / (a * a) + z * z / (c * c) - 1.0).abs();
            let holds = match mesh.tag_names[&(2, tag)].as_str() {
                "endocardium" => level(7.0, 17.0) < 1e-13,
                "epicardium" => level(10.0, 20.0) < 1e-13,
                "base" => z == 5.0,
                name => panic!("unexpected part {name}"),
            };
            assert!(holds, "{x} {y} {z}");
        }
    }
}

#[test]
fn fibres_are_unit_vectors_along_the_wall_at_the_angle_of_their_depth() {
    let mesh = ventricle(&VentricleConfig { h_mm: 0.9 }).unwrap();
    let (fibre, depth) = (&mesh.cell_fields["fibre"].values, &mesh.cell_fields["transmural"].values);
    for (cell, (f, &t)) in fibre.chunks(3).zip(depth).enumerate() {
        assert!((f.iter().map(|x| x * x).sum::<f64>() - 1.0).abs() < 1e-14);
        assert!(t > 0.0 && t < 1.0);
        let mut p = [0.0; 3];
        for &node in mesh.cell(cell) {
            (0..3).for_each(|d| p[d] += 0.25 * mesh.points[node as usize][d]);
        }
        let r = p[0].hypot(p[1]);
        let (a, c) = (7.0 + 3.0 * t, 17.0 + 3.0 * t);
        let normal = [p[0] / (a * a), p[1] / (a * a), p[2] / (c * c)];
        let across: f64 = (0..3).map(|d| normal[d] * f[d]).sum();
        let length = normal.iter().map(|x| x * x).sum::<f64>().sqrt();
        assert!(across.abs() < 1e-12 * length.max(1e-3), "cell {cell}: {across}");
        let around = (-p[1] * f[0] + p[0] * f[1]) / r;
        assert!((around - (PI / 3.0 * (1.0 - 2.0 * t)).cos()).abs() < 1e-12);
        assert_eq!(f[2] > 0.0, t < 0.5, "fibres climb to the base in the inner half");
    }
}

#[test]
fn impossible_lengths_and_excessive_counts_are_refused_before_any_work() {
    let message = |result: Result<Mesh, MeshError>| result.unwrap_err().to_string();
    for h in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(message(ball(&BallConfig { radius: 1.0, h })).contains("h: "));
        assert!(message(ventricle(&VentricleConfig { h_mm: h })).contains("h_mm: "));
        let config = CylinderConfig { radius: 1.0, height: h, h: 0.1 };
        assert!(message(cylinder(&config)).contains("height: "));
    }
    for h in [1e-5, 1e-300] {
        assert!(message(ball(&BallConfig { radius: 1.0, h })).contains("nodes"));
        assert!(message(ventricle(&VentricleConfig { h_mm: h })).contains("nodes"));
        assert!(message(cylinder(&CylinderConfig { radius: 1.0, height: 1.0, h })).contains("nodes"));
    }
}
