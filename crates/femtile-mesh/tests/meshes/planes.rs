//! Meshes in the plane with nodes that no cell uses, and with coordinates that are rounded; surfaces in space.

use std::path::Path;

use femtile_mesh::check::{CheckConfig, CheckError, check};
use femtile_mesh::{CellKind, Mesh, MeshError, io};

/// A unit square in the plane z = `height` that has a corner at `corner`, and a node of number 5 off it.
fn squares(height: f64, corner: f64, off: f64) -> Vec<(&'static str, Result<Mesh, MeshError>)> {
    let points =
        [[0.0, 0.0, height], [1.0, 0.0, height], [1.0, 1.0, corner], [0.0, 1.0, height], [0.5, 0.5, off]];
    let lines = |begin: &dyn Fn(usize) -> String, separator: &str, end: &str| -> String {
        let line = |(i, p): (usize, &[f64; 3])| {
            format!("{}{}{end}\n", begin(i), p.map(|x| x.to_string()).join(separator))
        };
        points.iter().enumerate().map(line).collect()
    };
    let numbered = lines(&|i| format!("{} ", i + 1), " ", "");
    let msh = format!(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n5\n{numbered}$EndNodes\n$Elements\n2\n1 15 2 0 5 5\n\
         2 3 2 1 1 1 2 3 4\n$EndElements\n"
    );
    let inp = format!(
        "*NODE\n{}*ELEMENT, TYPE=CPS4, ELSET=E\n1, 1, 2, 3, 4\n",
        lines(&|i| format!("{}, ", i + 1), ", ", "")
    );
    let vtk = format!(
        "# vtk DataFile Version 3.0\nx\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 5 double\n{}CELLS 1 5\n4 0 1 2 3\n\
         CELL_TYPES 1\n9\n",
        lines(&|_| String::new(), " ", "")
    );
    let medit = format!(
        "MeshVersionFormatted 2\nDimension 3\nVertices\n5\n{}Quadrilaterals\n1\n1 2 3 4 1\nEnd\n",
        lines(&|_| String::new(), " ", " 0")
    );
    vec![
        ("gmsh", io::gmsh::parse(Path::new("a.msh"), msh.as_bytes())),
        ("abaqus", io::abaqus::parse(Path::new("a.inp"), inp.as_bytes())),
        ("vtk", io::vtk::parse(Path::new("a.vtk"), vtk.as_bytes())),
        ("medit", io::medit::parse(Path::new("a.mesh"), medit.as_bytes())),
    ]
}

#[test]
fn nodes_that_no_cell_uses_do_not_decide_whether_a_mesh_is_plane() {
    for (height, corner) in [(0.0, 0.0), (0.0, 1e-11), (7.0, 7.0 + 1e-11)] {
        for (format, mesh) in squares(height, corner, 9.0) {
            let mut mesh = mesh.unwrap_or_else(|error| panic!("{format}: {error}"));
            assert!(mesh.points.iter().all(|point| point[2] == 0.0), "{format}");
            let report = check(&mut mesh, &CheckConfig::default()).unwrap();
            assert_eq!((report.n_nodes, report.n_orphans, report.n_cells), (4, 1, 1), "{format}");
            assert!(report.warnings.iter().any(|warning| warning.contains("1 node belonged to no cell")));
        }
    }
}

#[test]
fn a_mesh_that_leaves_its_plane_is_a_surface_in_space() {
    for (format, mesh) in squares(2.0, 2.5, 0.0) {
        let mut mesh = mesh.unwrap_or_else(|error| panic!("{format}: {error}"));
        let report = check(&mut mesh, &CheckConfig::default()).unwrap();
        assert!(mesh.is_surface && mesh.points.contains(&[1.0, 1.0, 2.5]), "{format}");
        // Lines from corner to corner rise by x y / 2.
        let area = report.volume;
        assert!((area - 1.0).abs() < 0.1 && area > 1.05, "{format}: {area}");
    }
}

#[test]
fn the_plane_of_a_mesh_is_as_thick_as_rounding() {
    for (format, mesh) in squares(0.0, 1e-8, 0.0) {
        assert!(mesh.unwrap().is_surface, "{format}");
    }
    // Arrays follow the rule of files; node 4 is that of no cell.
    for (height, corner, is_surface) in [
        (0.0, 0.0, false),
        (1.0, 1.0, false),
        (0.0, 1e-17, false),
        (7.0, 7.0 + 1e-11, false),
        (0.0, 1e-8, true),
    ] {
        let points = vec![
            [0.0, 0.0, height],
            [1.0, 0.0, height],
            [1.0, 1.0, corner],
            [0.0, 1.0, height],
            [0.5, 0.5, 9.0],
        ];
        let mesh = Mesh::new(points, CellKind::Quadrilateral, vec![0, 1, 2, 3]).unwrap();
        assert_eq!(mesh.is_surface, is_surface, "{height} {corner}");
        assert!(is_surface || mesh.points.iter().all(|point| point[2] == 0.0));
    }
    let bad = vec![[0.0, 0.0, f64::NAN], [1.0, 0.0, 0.0], [1.0, 1.0, 0.0]];
    assert!(Mesh::new(bad, CellKind::Triangle, vec![0, 1, 2]).is_err());
}

#[test]
fn messages_about_nodes_count_those_that_were_dropped() {
    // Two squares that touch along an edge with nodes of its own, behind a node that no cell uses.
    let x = [5.0, 0.0, 1.0, 1.0, 0.0, 1.0, 2.0, 2.0, 1.0];
    let y = [5.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0];
    let points: Vec<[f64; 3]> = x.into_iter().zip(y).map(|(x, y)| [x, y, 0.0]).collect();
    let mut mesh = Mesh::new(points, CellKind::Quadrilateral, vec![1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    let warnings = check(&mut mesh, &CheckConfig::default()).unwrap().warnings.join("\n");
    let words = "2 nodes coincide with others (node 5 with node 2, …); `merge = true` in [mesh]";
    assert!(warnings.contains(words), "{warnings}");
    // Three triangles on the edge from node 1 to node 2.
    let points = [[9.0, 9.0], [0.0, 0.0], [1.0, 0.0], [0.5, 1.0], [0.5, -1.0], [0.5, 2.0]];
    let points = points.map(|[x, y]| [x, y, 0.0]).to_vec();
    let mut mesh = Mesh::new(points, CellKind::Triangle, vec![1, 2, 3, 2, 1, 4, 1, 2, 5]).unwrap();
    match check(&mut mesh, &CheckConfig::default()).unwrap_err() {
        CheckError::SharedFacet { mut nodes, .. } => {
            nodes.sort_unstable();
            assert_eq!(nodes, [1, 2]);
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_geometry_given_as_a_mesh_is_refused_with_the_command_that_meshes_it() {
    for file in ["part.geo", "part.step"] {
        let error = io::read(Path::new(file)).unwrap_err().to_string();
        let command =
            format!("`gmsh -3 -format msh41 {file}` (of a plane one `-2`) writes its mesh to `part.msh`");
        assert!(error.contains(&command), "{error}");
    }
}
