//! The Gmsh files of our writer, read by meshio: points, cells, groups, fields.

use std::path::Path;
use std::process::Command;

use femtile::mesh::generate::{BoxConfig, BoxSplit, SquareConfig, SquareSplit, box_mesh, square};
use femtile::mesh::{Field, Mesh, io};
use serde_json::{Value, json};

/// The Python with meshio; none, and a note why, where there is none.
fn python() -> Option<std::ffi::OsString> {
    let skip = |why: &str| eprintln!("SKIPPED: meshio reads .msh files: {why}");
    let Some(python) = std::env::var_os("FEMTILE_PYTHON") else {
        skip("FEMTILE_PYTHON names no Python with meshio");
        return None;
    };
    let imported = Command::new(&python).args(["-c", "import meshio"]).output();
    if imported.is_ok_and(|imported| imported.status.success()) {
        return Some(python);
    }
    skip("the Python of FEMTILE_PYTHON has no meshio");
    None
}

fn meshes() -> Vec<Mesh> {
    let boxes = [BoxSplit::Kuhn, BoxSplit::Hexahedron]
        .map(|split| box_mesh(&BoxConfig { cells: [2, 1, 4], split, ..BoxConfig::default() }).unwrap());
    let planes = [SquareSplit::Triangles, SquareSplit::Quadrilateral]
        .map(|split| square(&SquareConfig { cells: [2, 4], split, ..SquareConfig::default() }).unwrap());
    boxes.into_iter().chain(planes).collect()
}

fn read(python: &std::ffi::OsStr, mesh: &Mesh) -> Value {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("meshio/read_msh.py");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mesh.msh");
    let found = [io::gmsh::write, io::gmsh::write_binary].map(|write| {
        write(&file, mesh).unwrap();
        let read = Command::new(python).arg(&script).arg(&file).output().unwrap();
        assert!(read.status.success(), "{}: {}", mesh.kind, String::from_utf8_lossy(&read.stderr));
        // NaN, as Python prints it, is no JSON.
        String::from_utf8_lossy(&read.stdout).replace("NaN", "null")
    });
    assert_eq!(found[0], found[1], "{}", mesh.kind);
    serde_json::from_str(&found[0]).unwrap()
}

/// Blocks of meshio, one after another.
fn joined(blocks: &Value) -> Vec<Value> {
    blocks.as_array().unwrap().iter().flat_map(|block| block.as_array().unwrap()).cloned().collect()
}

#[test]
fn meshio_reads_cells_groups_and_fields_of_gmsh_files() {
    let Some(python) = python() else { return };
    for mut mesh in meshes() {
        let plain = read(&python, &mesh);
        let n_facets = mesh.facets.tags.len();
        assert_eq!(plain["points"], json!(mesh.points), "{}", mesh.kind);
        // Cells without a tag are one group beside those of facets.
        let groups = joined(&plain["cell_data"]["gmsh:physical"]);
        assert!(
            n_facets > 0
                && groups[..n_facets] == mesh.facets.tags.iter().map(|tag| json!(tag)).collect::<Vec<_>>()
        );
        assert!(
            groups.len() == n_facets + mesh.n_cells() && groups[n_facets..].iter().all(|group| group == 1)
        );

        mesh.cell_tags = (0..mesh.n_cells() as i32).map(|cell| [0, 1, 3][cell as usize % 3]).collect();
        mesh.tag_names.insert((mesh.dimension(), 3), "third \"part\"\u{1b}".into());
        let field = |n_components, n: usize| Field {
            n_components,
            values: (0..n).map(|i| 0.125 * i as f64).collect(),
        };
        let (n_cells, n_nodes) = (mesh.n_cells(), mesh.n_nodes());
        mesh.cell_fields.insert("sigma".into(), field(1, n_cells));
        mesh.cell_fields.insert("flux".into(), field(3, 3 * n_cells));
        mesh.cell_fields.insert("pair".into(), field(2, 2 * n_cells));
        mesh.node_fields.insert("u".into(), field(1, n_nodes));
        let found = read(&python, &mesh);
        assert_eq!(found["point_data"]["u"], json!(mesh.node_fields["u"].values));
        assert_eq!(found["names"]["third _part_\\u{1b}"], json!([3, mesh.dimension()]));
        // Cells by tag, those without one as the second.
        let order: Vec<usize> = [1, 0, 2].iter().flat_map(|&k| (k..n_cells).step_by(3)).collect();
        let groups: Vec<i32> = order.iter().map(|cell| [2, 1, 3][cell % 3]).collect();
        assert_eq!(
            joined(&found["cell_data"]["gmsh:physical"])[n_facets..],
            groups.iter().map(|group| json!(group)).collect::<Vec<_>>()
        );
        let nodes =
            found["cells"].as_array().unwrap().iter().flat_map(|block| block["nodes"].as_array().unwrap());
        let nodes: Vec<_> = nodes.skip(n_facets).cloned().collect();
        assert_eq!(nodes, order.iter().map(|&cell| json!(mesh.cell(cell))).collect::<Vec<_>>());
        let values = |name: &str| joined(&found["cell_data"][name]);
        let component = |cell: usize, k, n| 0.125 * (cell * n + k) as f64;
        for (position, &cell) in order.iter().enumerate() {
            let at = n_facets + position;
            assert_eq!(values("sigma")[at], json!(component(cell, 0, 1)));
            assert_eq!(values("flux")[at], json!([0, 1, 2].map(|k| component(cell, k, 3))));
            assert_eq!(values("pair[1]")[at], json!(component(cell, 1, 2)));
        }
        assert!(values("sigma")[..n_facets].iter().all(Value::is_null), "facets have no value");
    }
}

#[test]
fn abaqus_files_of_meshio_read_as_the_mesh_that_it_was_given() {
    let Some(python) = python() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("meshio/write_inp.py");
    let folder = tempfile::tempdir().unwrap();
    for mut mesh in meshes() {
        // In the order of tags, as cells are written.
        mesh.cell_tags =
            (0..mesh.n_cells()).map(|cell| if 2 * cell < mesh.n_cells() { 1 } else { 3 }).collect();
        let [from, to] = ["mesh.msh", "mesh.inp"].map(|name| folder.path().join(name));
        io::write(&from, &mesh).unwrap();
        let written = Command::new(&python).arg(&script).arg(&from).arg(&to).output().unwrap();
        assert!(written.status.success(), "{}: {}", mesh.kind, String::from_utf8_lossy(&written.stderr));
        let found = io::read(&to).unwrap_or_else(|error| panic!("{}: {error}", mesh.kind));
        assert_eq!((found.kind, &found.points, &found.cells), (mesh.kind, &mesh.points, &mesh.cells));
        let name = |tag: &i32| found.tag_names[&(mesh.dimension(), *tag)].clone();
        let expected = mesh.cell_tags.iter().map(|tag| format!("tag{tag}"));
        assert!(found.cell_tags.iter().map(name).eq(expected), "{}: {:?}", mesh.kind, found.tag_names);
        let facet_name = |tag: &i32| &found.tag_names[&(mesh.dimension() - 1, *tag)];
        assert!(found.facets.tags.iter().all(|tag| facet_name(tag) == "left"), "{}", mesh.kind);
        let on_the_left = found.facets.nodes.iter().all(|&node| found.points[node as usize][0] == 0.0);
        let n =
            |cells: usize| if mesh.kind.is_simplex() && mesh.dimension() == 3 { 2 * cells } else { cells };
        assert!(on_the_left && found.facets.tags.len() == n(4), "{}: {}", mesh.kind, found.facets.tags.len());
    }
}
