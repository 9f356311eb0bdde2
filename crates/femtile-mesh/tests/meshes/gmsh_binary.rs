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
