//! Binary files of Gmsh, beside the same meshes as text.

use femtile_mesh::generate::{BoxConfig, BoxSplit, SquareConfig, box_mesh, square};
use femtile_mesh::io::gmsh::{parse, read, write, write_binary};
use femtile_mesh::{Field, Mesh};

/// Meshes with facets, with tags, with fields and without any of them.
fn meshes() -> Vec<Mesh> {
    let boxes = [BoxSplit::Kuhn, BoxSplit::Hexahedron]
        .map(|split| box_mesh(&BoxConfig { cells: [3, 5, 2], split, ..BoxConfig::default() }).unwrap());
    let mut plane = square(&SquareConfig { cells: [7, 3], ..SquareConfig::default() }).unwrap();
    plane.points.iter_mut().for_each(|p| p[0] = (p[0] * 3.7).sin());
    let mut bare = plane.clone();
    (bare.facets, bare.tag_names) = Default::default();
    plane.cell_tags = (0..plane.n_cells() as i32).map(|cell| cell * cell % 4).collect();
    let values = (0..2 * plane.n_nodes()).map(|i| i as f64 / 3.0).collect();
    plane.node_fields.insert("u".into(), Field { n_components: 2, values });
    let values = (0..plane.n_cells()).map(|i| 1.0 / (i + 1) as f64).collect();
    plane.cell_fields.insert("$EndNodeData".into(), Field { n_components: 1, values });
    boxes.into_iter().chain([plane, bare]).collect()
}

#[test]
fn binary_files_hold_the_meshes_of_text_files() {
    let folder = tempfile::tempdir().unwrap();
    let [text, binary] = ["text.msh", "binary.msh"].map(|name| folder.path().join(name));
    for mesh in meshes() {
        write(&text, &mesh).unwrap();
        write_binary(&binary, &mesh).unwrap();
        let found = read(&binary).unwrap();
        assert_eq!(found, read(&text).unwrap());
        assert_eq!(
            (&found.points, found.n_cells(), &found.facets),
            (&mesh.points, mesh.n_cells(), &mesh.facets)
        );
        let bytes = std::fs::read(&binary).unwrap();
        assert!(bytes.starts_with(b"$MeshFormat\n4.1 1 8\n\x01\0\0\0\n$EndMeshFormat\n"));
        for end in (0..bytes.len().saturating_sub(60)).step_by(97) {
            assert!(
                parse(&binary, &bytes[..end]).is_err() || bytes[end..].starts_with(b"\n$NodeData"),
                "{end}"
            );
        }
    }
}

/// A binary file of a box, and the byte at which the numbers of its nodes begin.
fn box_in_binary() -> (Mesh, Vec<u8>, usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("box.msh");
    let mesh = box_mesh(&BoxConfig { cells: [2, 3, 1], ..BoxConfig::default() }).unwrap();
    write_binary(&path, &mesh).unwrap();
    let bytes = std::fs::read(path).unwrap();
    let mark = b"$Nodes\n";
    let begin = bytes.windows(mark.len()).position(|window| window == mark).unwrap() + mark.len();
    // Four sizes of the section, three integers and a size of its block.
    (mesh, bytes, begin + 4 * 8 + 3 * 4 + 8)
}

#[test]
fn nodes_in_any_order_of_their_numbers_are_found() {
    let (mesh, mut bytes, at) = box_in_binary();
    let n = mesh.n_nodes();
    for (node, number) in bytes[at..].chunks_exact_mut(8).take(n).enumerate() {
        number.copy_from_slice(&((n - node) as u64).to_le_bytes());
    }
    let found = parse("box.msh".as_ref(), &bytes).unwrap();
    let reversed: Vec<u32> = mesh.cells.iter().map(|&node| n as u32 - 1 - node).collect();
    assert_eq!((&found.points, found.cells), (&mesh.points, reversed));
    // So far apart that no table holds them.
    for (node, number) in bytes[at..].chunks_exact_mut(8).take(n).enumerate() {
        let number_of = if node == 0 { 1 << 60 } else { node as u64 + 1 };
        number.copy_from_slice(&number_of.to_le_bytes());
    }
    let error = parse("box.msh".as_ref(), &bytes).unwrap_err().to_string();
    assert!(error.contains("uses node 1, which `$Nodes` does not have"), "{error}");
}

#[test]
fn faults_of_binary_blocks_are_told_at_their_bytes() {
    let (mesh, bytes, at) = box_in_binary();
    let error_with = |place: usize, word: [u8; 8]| {
        let mut bytes = bytes.clone();
        bytes[place..place + 8].copy_from_slice(&word);
        parse("box.msh".as_ref(), &bytes).unwrap_err().to_string()
    };
    let place = at + 8 * mesh.n_nodes() + 24 * 7 + 8;
    let error = error_with(place, f64::NAN.to_le_bytes());
    assert!(error.contains("a coordinate is NaN") && error.contains(&format!("{}", place + 8)), "{error}");
    let end = b"\n$EndElements";
    let place = bytes.windows(end.len()).position(|window| window == end).unwrap() - 8;
    let error = error_with(place, 4711u64.to_le_bytes());
    assert!(error.contains("uses node 4711") && error.contains(&format!("{}", place + 8)), "{error}");
    let error = error_with(at, 2u64.to_le_bytes());
    assert!(error.contains("two nodes have the number 2"), "{error}");
}
