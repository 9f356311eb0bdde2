//! Cells of higher order in files of Gmsh and VTK, and what is refused.

use std::fmt::Write;
use std::path::Path;

use femtile_mesh::check::{CheckConfig, CheckError, check};
use femtile_mesh::{CellKind, Mesh, MeshError, io};

/// One quadrilateral of order two and its boundary in a file of Gmsh; `middle` is left out of the serendipity cell.
fn gmsh_square(number: u32, n_nodes: usize) -> Result<Mesh, MeshError> {
    let mut text = String::from("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n9\n");
    let points = [[0, 0], [2, 0], [2, 2], [0, 2], [1, 0], [2, 1], [1, 2], [0, 1], [1, 1]];
    for (node, [x, y]) in points.iter().enumerate() {
        let _ = writeln!(text, "{} {x} {y} 0", node + 1);
    }
    text.push_str("$EndNodes\n$Elements\n3\n1 8 2 7 7 1 2 5\n2 8 2 8 8 3 4 7\n");
    let nodes: Vec<String> = (1..=n_nodes).map(|node| node.to_string()).collect();
    let _ = writeln!(text, "3 {number} 2 5 5 {}\n$EndElements", nodes.join(" "));
    io::gmsh::parse(Path::new("square.msh"), text.as_bytes())
}

#[test]
fn a_quadrilateral_of_order_two_keeps_its_corners_as_nodes_and_lines_as_facets() {
    for (number, n_nodes) in [(10, 9), (16, 8)] {
        let mesh = gmsh_square(number, n_nodes).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(
            (mesh.kind, mesh.n_nodes(), &mesh.cells[..]),
            (CellKind::Quadrilateral, 4, &[0, 1, 2, 3][..])
        );
        assert_eq!((&mesh.facets.nodes[..], &mesh.facets.tags[..]), (&[0, 1, 2, 3][..], &[7, 8][..]));
        assert_eq!(mesh.cell_tags, [5]);
        let curved = mesh.curved.unwrap();
        assert_eq!((curved.order, curved.cells), (2, vec![0, 4, 1, 7, 8, 5, 3, 6, 2]));
        assert_eq!(curved.points[8], [1.0, 1.0, 0.0]);
    }
    let message = gmsh_square(21, 9).unwrap_err().to_string();
    assert!(message.contains("triangle of higher order"), "{message}");
}

/// A grid of VTK with points of a square at (i, j) / 3 and cells of given types.
fn vtk(version: &str, cells: &[(u8, &[usize])], points: &[[f64; 3]]) -> Result<Mesh, MeshError> {
    let mut text = format!("# vtk DataFile Version {version}\ntitle\nASCII\nDATASET UNSTRUCTURED_GRID\n");
    let _ = writeln!(text, "POINTS {} double", points.len());
    points.iter().for_each(|[x, y, z]| _ = writeln!(text, "{x:?} {y:?} {z:?}"));
    let size: usize = cells.iter().map(|(_, points)| points.len() + 1).sum();
    let _ = writeln!(text, "CELLS {} {size}", cells.len());
    for (_, points) in cells {
        let _ = write!(text, "{}", points.len());
        points.iter().for_each(|point| _ = write!(text, " {point}"));
        text.push('\n');
    }
    let _ = writeln!(text, "CELL_TYPES {}", cells.len());
    cells.iter().for_each(|(number, _)| _ = writeln!(text, "{number}"));
    let _ = writeln!(text, "POINT_DATA {}\nSCALARS u double 1\nLOOKUP_TABLE default", points.len());
    (0..points.len()).for_each(|point| _ = writeln!(text, "{point}"));
    io::vtk::parse(Path::new("cells.vtk"), text.as_bytes())
}

fn lattice(order: usize, dimension: usize) -> Vec<[f64; 3]> {
    let row = order + 1;
    let at = |i: usize| [i % row, i / row % row, i / (row * row)].map(|i| i as f64);
    (0..row.pow(dimension as u32)).map(at).collect()
}

#[test]
fn a_lagrange_quadrilateral_of_order_three_is_read_with_fields_at_its_corners() {
    let points = [0, 3, 15, 12, 1, 2, 7, 11, 13, 14, 4, 8, 5, 6, 9, 10];
    let mesh = vtk("5.1", &[(70, &points)], &lattice(3, 2)).unwrap_or_else(|error| panic!("{error}"));
    let curved = mesh.curved.as_ref().unwrap();
    assert!(curved.order == 3 && curved.cells.iter().copied().eq(0..16));
    assert_eq!(
        (&mesh.cells[..], &mesh.node_fields["u"].values[..]),
        (&[0, 1, 3, 2][..], &[0., 3., 12., 15.][..])
    );
}

#[test]
fn upright_edges_of_lagrange_hexahedra_are_exchanged_in_old_files() {
    let numbers: Vec<usize> = (0..27).collect();
    let order = |version: &str, number: u8| {
        vtk(version, &[(number, &numbers)], &lattice(2, 3)).unwrap().curved.unwrap().cells
    };
    let old = order("4.2", 72);
    assert_eq!((old[9], old[11], old[15], old[17]), (16, 17, 18, 19));
    let quadratic = order("4.2", 29);
    assert_eq!((quadratic[9], quadratic[11], quadratic[15], quadratic[17]), (16, 17, 19, 18));
}

#[test]
fn wrong_counts_and_mixed_orders_are_refused_by_name() {
    let message = |cells: &[(u8, &[usize])]| vtk("5.1", cells, &lattice(3, 2)).unwrap_err().to_string();
    let found = message(&[(70, &[0, 1, 2, 3, 4])]);
    assert!(found.contains("cell 0") && found.contains("5 points"), "{found}");
    let nine = [0, 2, 10, 8, 1, 6, 9, 4, 5];
    let found = message(&[(28, &nine), (9, &[2, 3, 11, 10])]);
    assert!(found.contains("order 2 and 1"), "{found}");
    let found = message(&[(9, &[2, 3, 11, 10]), (23, &nine[..8])]);
    assert!(found.contains("order 1 and 2"), "{found}");
    let found = message(&[(22, &nine[..7])]);
    assert!(found.contains("cell 0 is a triangle with 7 nodes"), "{found}");
    let found = message(&[(69, &[0, 1, 2, 3, 4, 5, 6, 7, 8])]);
    assert!(found.contains("cell 0 is a Lagrange triangle with 9 points; order 1 to 9"), "{found}");
    let found = message(&[(23, &nine)]);
    assert!(found.contains("cell 0 is a quadrilateral with 9 nodes"), "{found}");
}

#[test]
fn a_file_whose_hexahedra_share_a_face_three_times_is_refused_with_advice() {
    let mut points = lattice(2, 3);
    // A third cell on the face x = 1 that the first two share, bent away from both.
    points.extend([[2.0, 0.0, 3.0], [2.0, 1.0, 3.0], [2.0, 0.0, 4.0], [2.0, 1.0, 4.0]]);
    let cells: [(u8, &[usize]); 3] = [
        (12, &[0, 1, 4, 3, 9, 10, 13, 12]),
        (12, &[1, 2, 5, 4, 10, 11, 14, 13]),
        (12, &[1, 27, 28, 4, 10, 29, 30, 13]),
    ];
    let mut mesh = vtk("5.1", &cells, &points).unwrap();
    let error = check(&mut mesh, &CheckConfig::default()).unwrap_err();
    let CheckError::SharedFacet { cells, .. } = &error else { panic!("{error}") };
    assert_eq!(cells[..], [0, 1, 2]);
    assert!(error.to_string().contains("overlap"), "{error}");
}
