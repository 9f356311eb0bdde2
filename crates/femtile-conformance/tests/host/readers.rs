//! Every encoding of a mesh reads as that mesh, and what is written reads back.

use std::collections::BTreeSet;
use std::path::Path;

use femtile_conformance::{mesh_files, quadratic_files};
use femtile_mesh::check::{CheckConfig, check};
use femtile_mesh::generate::{BoxConfig, SquareConfig, box_mesh, square};
use femtile_mesh::{CellKind, Facets, Mesh, MeshError, io};
use proptest::prelude::*;

/// A mesh of any nodes and cells: readers look at neither geometry nor topology.
fn meshes() -> impl Strategy<Value = Mesh> {
    let kinds = prop_oneof![Just(CellKind::Triangle), Just(CellKind::Tetrahedron)];
    (kinds, 2usize..20, 1usize..14, 0usize..7).prop_flat_map(|(kind, n_nodes, n_cells, n_facets)| {
        let n = kind.n_nodes();
        let flat = if kind.dimension() == 2 { 0.0 } else { 1.0 };
        let real = prop_oneof![-10.0..10.0f64, any::<i16>().prop_map(f64::from), Just(1e-300), Just(0.1)];
        let points = prop::collection::vec((real.clone(), real.clone(), real), n_nodes);
        let nodes = |count| prop::collection::vec(0..n_nodes as u32, count);
        let tags = |count| prop::collection::vec(1..4i32, count);
        (points, nodes(n * n_cells), tags(n_cells), nodes((n - 1) * n_facets), tags(n_facets)).prop_map(
            move |(points, cells, cell_tags, facet_nodes, facet_tags)| {
                let points = points.into_iter().map(|(x, y, z)| [x, y, z * flat]).collect();
                let mut mesh = Mesh::new(points, kind, cells).unwrap();
                mesh.cell_tags = cell_tags;
                mesh.facets = Facets { nodes: facet_nodes, tags: facet_tags };
                // Both ends of the numbering are used, so that the file shows whether it counts from 0 or 1.
                (mesh.cells[0], mesh.cells[1]) = (0, n_nodes as u32 - 1);
                without_copies(mesh)
            },
        )
    })
}

/// Leaves one of the cells with the same nodes: those of Gmsh 2.2 are one cell in several groups.
fn without_copies(mut mesh: Mesh) -> Mesh {
    let mut seen = BTreeSet::new();
    let is_first = |i: &usize| {
        let mut nodes = mesh.cell(*i).to_vec();
        nodes.sort_unstable();
        seen.insert(nodes)
    };
    let kept: Vec<usize> = (0..mesh.n_cells()).filter(is_first).collect();
    let cells = kept.iter().flat_map(|&i| mesh.cell(i).to_vec()).collect();
    mesh.cell_tags = kept.iter().map(|&i| mesh.cell_tags[i]).collect();
    mesh.cells = cells;
    mesh
}

/// Cells and facets with their tags in an order that does not depend on the file's.
fn canonical(mesh: &Mesh) -> [Vec<(Vec<u32>, i32)>; 2] {
    let cells = (0..mesh.n_cells()).map(|i| (mesh.cell(i).to_vec(), mesh.cell_tags[i]));
    let facets = (0..mesh.facets.tags.len()).map(|i| (mesh.facet(i).to_vec(), mesh.facets.tags[i]));
    let (mut cells, mut facets): (Vec<_>, Vec<_>) = (cells.collect(), facets.collect());
    cells.sort();
    facets.sort();
    [cells, facets]
}

fn assert_same(name: &str, read: Result<Mesh, MeshError>, mesh: &Mesh) {
    let read = read.unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(read.points, mesh.points, "{name}");
    assert_eq!(read.kind, mesh.kind, "{name}");
    assert_eq!(canonical(&read), canonical(mesh), "{name}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_encoding_of_a_mesh_reads_as_that_mesh(mesh in meshes()) {
        for files in mesh_files::all(&mesh) {
            let read = (files.parse)(&files.files);
            if let Ok(read) = &read {
                let named = read.tag_names.get(&(mesh.dimension(), 1)).map(String::as_str);
                // Abaqus has names of sets, not of groups, and a set of no cells names no region.
                let has_name = match files.name {
                    "Abaqus" => mesh.cell_tags.contains(&1),
                    // Version 1 has no names.
                    name => name.starts_with("Gmsh") && name != "Gmsh 1",
                };
                prop_assert_eq!(named, has_name.then_some("first part"));
                if files.name.starts_with("VTK") {
                    let flux: Vec<f64> = mesh.points.iter().flatten().copied().collect();
                    prop_assert_eq!(&read.node_fields["heat flux"].values, &flux);
                }
            }
            assert_same(files.name, read, &mesh);
        }
    }

    #[test]
    fn what_is_written_reads_back(mesh in meshes()) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["mesh.msh", "mesh.mesh", "mesh.node", "mesh.vtu", "mesh.pts"] {
            let path = folder.path().join(name);
            io::write(&path, &mesh).unwrap();
            assert_same(name, io::read(&path), &mesh);
        }
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        let mut parts = mesh.facets.tags.clone();
        parts.sort_unstable();
        parts.dedup();
        let facets = if parts.is_empty() { 0 } else { 1 + parts.len() };
        prop_assert_eq!(left, 7 + facets, "temporary files stay");
    }

    #[test]
    fn a_file_cut_short_is_refused_or_lacks_only_its_tail(mesh in meshes(), share in 0.0..1.0f64) {
        for mut files in mesh_files::all(&mesh) {
            let file = &mut files.files[0];
            file.truncate((file.len() as f64 * share) as usize);
            if let Ok(read) = (files.parse)(&files.files) {
                prop_assert_eq!(read.n_nodes(), mesh.n_nodes(), "{}", files.name);
            }
        }
    }
}

const MSH: &str = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n4\n1 0 0 0\n2 1 0 0\n3 0 1 0\n4 0 0 1\n$EndNodes\n\
                   $Elements\n1\n1 4 2 0 1 1 2 3 4\n$EndElements\n";
const MEDIT: &str = "MeshVersionFormatted 2\nDimension 3\nVertices\n4\n0 0 0 0\n1 0 0 0\n0 1 0 0\n0 0 1 0\nTetrahedra\n1\n1 2 3 4 7\nEnd\n";
const VTK: &str = "# vtk DataFile Version 3.0\nt\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 4 double\n0 0 0\n1 0 0\n\
                   0 1 0\n0 0 1\nCELLS 1 5\n4 0 1 2 3\nCELL_TYPES 1\n10\n";

fn message(text: &str) -> String {
    let bytes = text.as_bytes();
    let result = match text.as_bytes()[0] {
        b'$' => io::gmsh::parse(Path::new("a.msh"), bytes),
        b'#' => io::vtk::parse(Path::new("a.vtk"), bytes),
        _ => io::medit::parse(Path::new("a.mesh"), bytes),
    };
    result.expect_err("this file is broken").to_string()
}

#[test]
fn errors_name_the_line_and_what_is_wrong() {
    for (text, expected) in [
        (MSH.replace("3 0 1 0", "3 0 nan 0"), "a.msh: line 8: a coordinate is NaN"),
        (MSH.replace("3 0 1 0", "3 0 x 0"), "a.msh: line 8: a coordinate should be a number, not `x`"),
        (MSH.replace("1 2 3 4\n", "1 2 3 9\n"), "a.msh: line 13: an element uses node 9"),
        (
            MSH.replace("1 4 2", "1 29 2"),
            "line 13: Gmsh element type 29 (tetrahedron of higher order) is not supported",
        ),
        (MSH.replace("1 4 2", "1 777 2"), "line 13: Gmsh element type 777"),
        (MSH.replace("$Nodes\n4", "$Nodes\n4000000000"), "line 5: 4000000000 nodes are announced"),
        (MSH.replace("$Nodes\n4", "$Nodes\n3"), "line 9: `$EndNodes` should stand here, not `4`"),
        (MSH.replace("2.2 0 8", "3.0 0 8"), "line 2: version 3.0 of the format is not supported"),
        (MSH[..MSH.len() - 20].to_owned(), "line 13: the file ends where a node of an element should stand"),
        (MEDIT.replace("1 2 3 4 7", "1 2 3 5 7"), "a.mesh: line 11: a tetrahedron uses vertex 5"),
        (MEDIT.replace("1 2 3 4 7", "1 2 3 4"), "a.mesh: line 12: a reference should be a whole number"),
        (MEDIT.replace("0 1 0 0", "0 inf 0 0"), "a.mesh: line 7: a coordinate is inf"),
        (MEDIT.replace("Tetrahedra", "TetrahedraP3"), "line 9: `TetrahedraP3` is not supported"),
        (MEDIT[..40].to_owned(), "a.mesh: the file has no `Vertices`"),
        (VTK.replace("4 0 1 2 3", "4 0 1 2 4"), "cell 0 uses point 4, but there are 4 points"),
        (VTK.replace("1\n10\n", "1\n37\n"), "VTK cell type 37 (triquadratic pyramid) is not supported"),
        (VTK.replace("1\n10\n", "1\n24\n"), "cell 0 is a tetrahedron with 4 nodes"),
        (VTK.replace("CELLS 1 5", "CELLS 1 500"), "line 10: 500 nodes of cells are announced"),
        (VTK.replace("CELL_TYPES 1", "CELL_TYPES 2"), "line 12: types of 2 cells, but there are 1"),
    ] {
        let message = message(&text);
        assert!(message.contains(expected), "`{message}` should contain `{expected}`");
    }
}

#[test]
fn a_record_with_too_few_numbers_is_an_error_of_its_line() {
    let node = b"2 3 0 0\n0 0 0 0\n1 0 0\n2 1 1 1\n";
    let error = io::tetgen::parse(Path::new("a.node"), node, b"", None).unwrap_err().to_string();
    assert!(error.starts_with("a.node: line 3: the line ends where a coordinate"), "{error}");
}

#[test]
fn facets_in_two_physical_groups_carry_both_tags() {
    let text = "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Entities\n0 0 1 1\n5 0 0 0 1 1 1 2 -8 9 0\n\
                6 0 0 0 1 1 1 2 3 4 0\n$EndEntities\n$Nodes\n1 4 1 4\n3 6 0 4\n1\n2\n3\n4\n0 0 0\n1 0 0\n0 1 0\n\
                0 0 1\n$EndNodes\n$Elements\n2 2 1 2\n2 5 2 1\n1 1 2 3\n3 6 4 1\n2 1 2 3 4\n$EndElements\n";
    let mesh = io::gmsh::parse(Path::new("a.msh"), text.as_bytes()).unwrap();
    assert_eq!(mesh.cell_tags, [3]);
    assert_eq!(mesh.facets, Facets { nodes: vec![0, 1, 2, 0, 1, 2], tags: vec![8, 9] });
}

#[test]
fn an_unknown_extension_is_answered_with_those_that_are_read() {
    let error = io::read(Path::new("mesh.stl")).unwrap_err().to_string();
    for part in [".stl", ".node", ".msh", ".mesh", ".vtk", ".vtu", ".inp"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_missing_file_is_named() {
    for name in ["none.msh", "none.mesh", "none.node", "none.vtk", "none.vtu", "none.inp"] {
        let error = io::read(Path::new(name)).unwrap_err().to_string();
        assert!(error.starts_with("none.") && error.contains("cannot read"), "{error}");
    }
}

#[test]
fn simplices_of_order_two_read_as_straight_ones_with_a_warning() {
    let boxes = box_mesh(&BoxConfig { cells: [2, 1, 1], ..BoxConfig::default() }).unwrap();
    let plane = square(&SquareConfig { cells: [2, 3], ..SquareConfig::default() }).unwrap();
    for mut mesh in [boxes, plane] {
        mesh.cell_tags = (0..mesh.n_cells() as i32).map(|cell| 1 + cell % 3).collect();
        for (shift, words) in [(0.0, "lie in the middle of edges"), (0.25, "curved shape is lost")] {
            for files in quadratic_files::all(&mesh, shift) {
                let name = files.name;
                let mut read = (files.parse)(&files.files).unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(
                    (&read.points, &read.cells, read.kind),
                    (&mesh.points, &mesh.cells, mesh.kind),
                    "{name}"
                );
                assert_eq!(read.facets.tags.len(), mesh.facets.tags.len(), "{name}");
                let values = read.node_fields.values().map(|field| field.values.len());
                assert!(values.into_iter().all(|n| n == mesh.n_nodes()), "{name}");
                if name != "Abaqus of order 2" {
                    assert_eq!(canonical(&read), canonical(&mesh), "{name}");
                }
                // Nodes of MFEM's spaces are not followed to their edges.
                let words = if name.starts_with("MFEM") { "midside nodes are dropped" } else { words };
                let expected = format!(
                    "{} {}",
                    mesh.n_cells(),
                    if mesh.dimension() == 3 { "tetrahedra" } else { "triangles" }
                );
                let [warning] = &check(&mut read, &CheckConfig::default()).unwrap().warnings[..] else {
                    panic!("{name}: one warning alone")
                };
                assert!(warning.starts_with(&expected) && warning.contains(words), "{name}: {warning}");
                assert!(warning.contains("of order 2 are read as straight"), "{name}: {warning}");
            }
        }
    }
}
