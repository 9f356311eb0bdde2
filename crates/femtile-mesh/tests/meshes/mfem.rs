//! Meshes of MFEM: its own samples, and small files with all that can go wrong.

use std::path::Path;

use femtile_mesh::check::{CheckConfig, CheckError, check};
use femtile_mesh::{CellKind, Mesh, MeshError, io};

use crate::samples::samples;

/// Name, order, nodes, cells, tagged facets, points of curved cells.
const SAMPLES: [(&str, usize, usize, usize, usize, usize); 9] = [
    ("fichera.mesh", 1, 26, 7, 24, 0),
    ("fichera-q2.mesh", 2, 26, 7, 24, 117),
    ("fichera-q3.mesh", 3, 26, 7, 24, 316),
    ("toroid-hex.mesh", 3, 24, 6, 24, 288),
    ("spiral_3D_p9.mesh", 9, 8, 1, 6, 1000),
    ("multidomain-hex.mesh", 2, 100, 60, 88, 623),
    ("stretched3D.mesh", 1, 125, 64, 96, 0),
    ("star-q2.mesh", 2, 31, 20, 20, 101),
    ("star-q3.mesh", 3, 31, 20, 20, 211),
];

#[test]
fn samples_have_their_points_and_pass_the_check() {
    let Some(folder) = samples("meshes/hex", "samples_have_their_points_and_pass_the_check") else { return };
    for (name, order, n_nodes, n_cells, n_facets, n_points) in SAMPLES {
        let mut mesh = io::read(&folder.join(name)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            (mesh.n_nodes(), mesh.n_cells(), mesh.facets.tags.len()),
            (n_nodes, n_cells, n_facets),
            "{name}"
        );
        let found = mesh.curved.as_ref().map_or((1, 0), |curved| (curved.order, curved.points.len()));
        assert_eq!(found, (order, n_points), "{name}");
        let report =
            check(&mut mesh, &CheckConfig::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(report.n_components <= 2 && report.volume > 0.0, "{name}");
        // The cube without an octant, and a torus of square cross-section.
        let expected = match name {
            "fichera.mesh" => Some((7.0, 1e-14)),
            "toroid-hex.mesh" => Some((2.0 * std::f64::consts::PI * 0.32, 2e-4)),
            _ => None,
        };
        let holds = |(exact, tolerance): (f64, f64)| (report.volume / exact - 1.0).abs() < tolerance;
        assert!(expected.is_none_or(holds), "{name}: {}", report.volume);
    }
}

/// Two squares side by side, the second turned, with nodes of order 2 that a map has moved.
fn two_squares(collection: &str, ordering: usize, values: &[[f64; 2]]) -> String {
    let mut text = String::from(
        "MFEM mesh v1.0\n# two squares\ndimension\n2\nelements\n2\n3 3 0 1 4 3\n4 3 5 4 1 2\n\nboundary\n1\n9 1 0 1\n\
         vertices\n7\nnodes\nFiniteElementSpace\n",
    );
    text.push_str(&format!("FiniteElementCollection: {collection}\nVDim: 2\nOrdering: {ordering}\n\n"));
    let numbers: Vec<String> = if ordering == 1 {
        values.iter().flatten().map(|x| format!("{x:?}")).collect()
    } else {
        (0..2).flat_map(|d| values.iter().map(move |p| format!("{:?}", p[d]))).collect()
    };
    text + &numbers.join("\n") + "\n"
}

fn parse(text: &str) -> Result<Mesh, MeshError> {
    io::mfem::parse(Path::new("squares.mesh"), text.as_bytes())
}

/// Vertices, then edges as cells meet them, then middles; on the rectangle from (0, 0) to (2, 1).
const CONTINUOUS: [[f64; 2]; 15] = [
    [0., 0.],
    [1., 0.],
    [2., 0.],
    [0., 1.],
    [1., 1.],
    [2., 1.],
    [0.5, 0.],
    [1., 0.5],
    [0.5, 1.],
    [0., 0.5],
    [1.5, 1.],
    [1.5, 0.],
    [2., 0.5],
    [0.5, 0.5],
    [1.5, 0.5],
];

#[test]
fn nodes_are_numbered_by_vertices_edges_and_cells_and_unused_vertices_do_not_count() {
    for ordering in [0, 1] {
        let mut mesh = parse(&two_squares("H1_2D_P2", ordering, &CONTINUOUS)).unwrap();
        let curved = mesh.curved.clone().unwrap();
        assert_eq!(mesh.kind, CellKind::Quadrilateral);
        assert_eq!((&mesh.cell_tags[..], &mesh.facets.tags[..]), (&[3, 4][..], &[9][..]));
        for (cell, points) in curved.cells.chunks(9).enumerate() {
            let at = |place: usize| curved.points[points[place] as usize];
            let origin = [[0.0, 0.0], [2.0, 1.0]][cell];
            let sign = [1.0, -1.0][cell];
            for place in 0..9 {
                let expected = [0, 1].map(|d| origin[d] + sign * 0.5 * [place % 3, place / 3][d] as f64);
                assert_eq!(at(place), [expected[0], expected[1], 0.0], "{cell} {place}");
            }
        }
        let report = check(&mut mesh, &CheckConfig::default()).unwrap();
        assert_eq!((report.volume, report.boundary.len()), (2.0, 6));
    }
}

#[test]
fn a_dome_with_corners_in_a_plane_keeps_their_height() {
    let text = |top: f64| {
        let grid =
            [[0., 0.], [1., 0.], [1., 1.], [0., 1.], [0.5, 0.], [1., 0.5], [0.5, 1.], [0., 0.5], [0.5, 0.5]];
        let line = |(i, [x, y]): (usize, [f64; 2])| format!("{x} {y} {}\n", if i < 4 { 2.0 } else { top });
        let values: String = grid.into_iter().enumerate().map(line).collect();
        format!(
            "MFEM mesh v1.0\ndimension\n2\nelements\n1\n3 3 0 1 2 3\nboundary\n0\nvertices\n4\nnodes\nFiniteElementSpace\n\
             FiniteElementCollection: H1_2D_P2\nVDim: 3\nOrdering: 1\n{values}"
        )
    };
    for (top, height) in [(2.0, 0.0), (2.5, 2.0)] {
        let mesh = parse(&text(top)).unwrap();
        let curved = mesh.curved.as_ref().unwrap();
        assert_eq!(mesh.is_surface, top > 2.0);
        assert!(mesh.points.iter().all(|point| point[2] == height && curved.points.contains(point)), "{top}");
    }
}

#[test]
fn discontinuous_nodes_are_moved_to_evenly_spaced_points_of_separate_cells() {
    let gauss = [0.5 - 0.15f64.sqrt(), 0.5, 0.5 + 0.15f64.sqrt()];
    let mut values = Vec::new();
    for (origin, sign) in [([0.0, 0.0], 1.0), ([2.0, 1.0], -1.0)] {
        for y in gauss {
            values.extend(gauss.map(|x| [origin[0] + sign * x, origin[1] + sign * y + 0.25 * x * x]));
        }
    }
    let mesh = parse(&two_squares("L2_2D_P2", 1, &values)).unwrap();
    let curved = mesh.curved.unwrap();
    assert_eq!(curved.points.len(), 18);
    for (point, found) in curved.points.iter().enumerate() {
        let (cell, place) = (point / 9, point % 9);
        let [x, y] = [place % 3, place / 3].map(|i| 0.5 * i as f64);
        let expected = [[x, y + 0.25 * x * x], [2.0 - x, 1.0 - y + 0.25 * x * x]][cell];
        assert!((0..2).all(|d| (found[d] - expected[d]).abs() < 1e-14), "{point}: {found:?}");
    }
}

#[test]
fn a_cell_that_is_folded_inside_is_refused_and_named() {
    let mut values = CONTINUOUS;
    values[13] = [1.6, 0.5];
    let mut mesh = parse(&two_squares("Quadratic", 0, &values)).unwrap();
    match check(&mut mesh, &CheckConfig::default()) {
        Err(CheckError::Folded { cell: 0, jacobian, .. }) => assert!(jacobian < 0.0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn broken_files_are_refused_with_the_line() {
    let good = two_squares("H1_2D_P2", 0, &CONTINUOUS);
    let message = |from: &str, to: &str| parse(&good.replacen(from, to, 1)).unwrap_err().to_string();
    for (from, to, expected) in [
        ("v1.0", "v1.1", "`MFEM mesh v1.1`"),
        ("elements\n2", "elements\n99999", "99999 elements"),
        ("3 3 0 1 4 3", "3 6 0 1 4 3 2 1", "a prism where"),
        ("3 3 0 1 4 3", "3 3 0 1 4 30", "vertex 30"),
        ("3 3 0 1 4 3", "3 1 0 1", "a segment where"),
        ("H1_2D_P2", "NURBS2", "NURBS2"),
        ("VDim: 2", "VDim: 4", "4 coordinates"),
        ("boundary", "border", "`boundary` should stand here"),
        ("\n0.5\n0.5\n", "\n", "the file ends"),
    ] {
        let found = message(from, to);
        assert!(found.contains(expected) && found.starts_with("squares.mesh: line"), "{from}: {found}");
    }
    let triangle = "MFEM mesh v1.0\ndimension\n2\nelements\n1\n1 2 0 1 2\nboundary\n0\nvertices\n3\n";
    let straight = parse(&format!("{triangle}2\n0 0\n1 0\n0 1\n")).unwrap();
    assert_eq!((straight.kind, straight.n_cells()), (CellKind::Triangle, 1));
    let nodes = "nodes\nFiniteElementSpace\nFiniteElementCollection: H1_2D_P2\nVDim: 2\nOrdering: 0\n0 0\n";
    let curved = parse(&format!("{triangle}{nodes}")).unwrap_err().to_string();
    assert!(curved.contains("12 coordinates of nodes are announced"), "{curved}");
    let cubic = parse(&format!("{triangle}{nodes}").replace("P2", "P3")).unwrap_err().to_string();
    assert!(cubic.contains("triangle cells with nodes of order 3"), "{cubic}");
}

const WORDS: [&str; 12] =
    ["0", "-1", "1", "3", "5", "9", "99999999", "4294967295", "9223372036854775807", "nan", "x", ""];

/// Replaces words of a text by others.
fn mutated(text: &str, changes: &[(f64, usize)]) -> String {
    let mut lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    for &(share, word) in changes {
        let n_words: usize = lines.iter().map(Vec::len).sum();
        let at = (share * n_words as f64) as usize;
        if let Some(found) = lines.iter_mut().flatten().nth(at) {
            *found = WORDS[word];
        }
    }
    lines.iter().map(|line| line.join(" ")).collect::<Vec<_>>().join("\n")
}

proptest::proptest! {
    #[test]
    fn no_change_of_words_makes_the_reader_panic(
        changes in proptest::collection::vec((0.0..1.0f64, 0..WORDS.len()), 1..4),
        collection in proptest::sample::select(&["H1_2D_P2", "L2_2D_P2", "Cubic", "H1_2D_P9", "Linear"][..]),
    ) {
        let text = mutated(&two_squares(collection, 1, &CONTINUOUS), &changes);
        if let Ok(mut mesh) = parse(&text) {
            mesh.validate().unwrap();
            let _ = check(&mut mesh, &CheckConfig::default());
        }
    }

    #[test]
    fn cubes_that_repeat_vertices_are_numbered_without_a_panic(
        vertices in proptest::collection::vec(0..10u32, 16),
        order in 2..4usize,
    ) {
        let cells: Vec<String> = vertices.chunks(8).map(|cell| {
            let words: Vec<String> = cell.iter().map(u32::to_string).collect();
            format!("1 5 {}", words.join(" "))
        }).collect();
        let mut text = format!("MFEM mesh v1.0\ndimension\n3\nelements\n2\n{}\nboundary\n0\nvertices\n10\nnodes\n", cells.join("\n"));
        text += &format!("FiniteElementSpace\nFiniteElementCollection: H1_3D_P{order}\nVDim: 3\nOrdering: 0\n");
        text += &"0.5\n".repeat(3 * 200);
        if let Ok(mesh) = parse(&text) {
            mesh.validate().unwrap();
        }
    }
}
