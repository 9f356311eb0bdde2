//! Files whose structure is wrong: sections that come twice, counts that lie, names that a terminal would obey.

use std::path::Path;

use femtile_mesh::generate::{SquareConfig, square};
use femtile_mesh::io::vtu::{Compression, WriteOptions, write_with};
use femtile_mesh::{Field, Mesh, io};

const VTK: &str = "# vtk DataFile Version 3.0\nt\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 4 double\n0 0 0\n1 0 0\n0 1 0\n\
                   0 0 1\nCELLS 1 5\n4 0 1 2 3\nCELL_TYPES 1\n10\n";
const CELL_DATA: &str = "CELL_DATA 1\nSCALARS region int 1\nLOOKUP_TABLE default\n7\n";
const POINT_DATA: &str = "POINT_DATA 4\nSCALARS u double 1\nLOOKUP_TABLE default\n1 2 3 4\n";
const MORE_POINTS: &str = "POINTS 5 double\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n1 1 1\n";
const MORE_CELLS: &str = "CELLS 2 10\n4 0 1 2 3\n4 0 1 2 3\n";

fn vtk(text: &str) -> Result<Mesh, String> {
    io::vtk::parse(Path::new("a.vtk"), text.as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn a_section_of_a_legacy_file_that_comes_again_is_refused_with_its_line() {
    for (text, expected) in [
        ([VTK, CELL_DATA, MORE_CELLS, "CELL_TYPES 2\n10 10\n"].concat(), "line 18: a second section `CELLS`"),
        ([VTK, CELL_DATA, "CELL_TYPES 1\n10\n"].concat(), "line 18: a second section `CELL_TYPES`"),
        ([VTK, POINT_DATA, MORE_POINTS].concat(), "line 18: a second section `POINTS`"),
        ([VTK, MORE_POINTS].concat(), "line 14: a second section `POINTS`"),
    ] {
        assert_eq!(vtk(&text).unwrap_err(), format!("a.vtk: {expected}"));
    }
    let both = vtk(&[VTK, CELL_DATA, POINT_DATA, CELL_DATA].concat()).unwrap();
    assert_eq!((both.cell_tags, both.node_fields["u"].values.len()), (vec![7], 4));
}

#[test]
fn data_of_a_legacy_file_follow_what_they_belong_to() {
    let (head, cells) = VTK.split_at(VTK.find("CELLS").unwrap());
    let (start, points) = head.split_at(head.find("POINTS").unwrap());
    for (text, expected) in [
        (
            [start, "POINT_DATA 0\nSCALARS u double\n", points, cells].concat(),
            "line 5: the section `POINT_DATA` should follow `POINTS`",
        ),
        (
            [head, "CELL_DATA 0\nSCALARS v double\n", cells].concat(),
            "line 10: the section `CELL_DATA` should follow `CELL_TYPES`",
        ),
        ([head, "CELL_TYPES 0\n", cells].concat(), "line 10: the section `CELL_TYPES` should follow `CELLS`"),
        ([start, cells].concat(), "the file has no `POINTS`"),
    ] {
        assert_eq!(vtk(&text).unwrap_err(), format!("a.vtk: {expected}"));
    }
}

fn data(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)).unwrap()
}

fn vtu(bytes: &[u8]) -> Result<Mesh, String> {
    io::vtu::parse(Path::new("a.vtu"), bytes).map_err(|error| error.to_string())
}

fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).expect("it is there");
    [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()
}

#[test]
fn a_byte_order_mark_before_a_vtu_file_is_passed_over() {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    for name in ["ascii_plain_32.vtu", "binary_zlib_64.vtu", "appended_raw_plain_64.vtu"] {
        let bytes = data(name);
        assert_eq!(vtu(&[MARK, &bytes].concat()), vtu(&bytes), "{name}");
        let place = |bytes: &[u8]| {
            let said = vtu(&replaced(bytes, "NumberOfCells=\"", "NumberOfCells=\"9")).unwrap_err();
            let digits = said.strip_prefix("a.vtu: byte ").unwrap().split(':').next().unwrap();
            digits.parse::<usize>().unwrap()
        };
        assert_eq!(place(&[MARK, &bytes].concat()), place(&bytes) + 3, "{name}");
    }
}

#[test]
fn counts_of_a_vtu_file_are_compared_before_anything_is_unpacked() {
    for name in ["appended_raw_zlib_64.vtu", "binary_zlib_32.vtu", "appended_base64_zlib_32.vtu"] {
        let lies = replaced(&data(name), "NumberOfPoints=\"5\"", "NumberOfPoints=\"4\"");
        let said = vtu(&lies).unwrap_err();
        assert!(said.contains("has 15 values for 4 entries of 3"), "{name}: {said}");
        let lies = replaced(&data(name), "NumberOfPoints=\"5\"", "NumberOfPoints=\"18446744073709551615\"");
        assert!(vtu(&lies).unwrap_err().contains("that cannot be counted"), "{name}");
    }
    // Were blocks unpacked first, that they are broken would be what is said.
    const ZLIB: [u8; 2] = [0x78, 0x5e];
    let lies = replaced(&data("appended_raw_zlib_64.vtu"), "NumberOfPoints=\"5\"", "NumberOfPoints=\"4\"");
    let blocks: Vec<usize> = (0..lies.len() - 1).filter(|&at| lies[at..at + 2] == ZLIB).collect();
    let mut broken = lies;
    blocks.iter().for_each(|&at| broken[at] = 0);
    assert!(blocks.len() > 3 && vtu(&broken).unwrap_err().contains("has 15 values for 4 entries"));
}

#[test]
fn arrays_of_a_vtu_file_that_share_bytes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.vtu");
    let mut mesh = square(&SquareConfig::default()).unwrap();
    let values = vec![1.0; mesh.n_nodes()];
    mesh.node_fields.insert("u0".into(), Field { n_components: 1, values });
    for compression in [Compression::None, Compression::Zlib, Compression::Lz4] {
        let options = WriteOptions { compression, ..WriteOptions::default() };
        write_with(&path, &mesh, &[], &[], options).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(vtu(&bytes).unwrap().node_fields.len(), 1);
        let text = String::from_utf8_lossy(&bytes);
        let line = text.lines().find(|line| line.contains("\"u0\"")).unwrap();
        let many: Vec<String> = (0..2000).map(|i| line.replace("\"u0\"", &format!("\"u{i}\""))).collect();
        let said = vtu(&replaced(&bytes, line, &many.join("\n"))).unwrap_err();
        assert!(said.contains("take more bytes than the appended data have: some share bytes"), "{said}");
    }
}

/// Names that would clear a screen, and break XML 1.0.
const NAME: &str = "a\u{1b}[2J\u{0}\u{9b}b";
const SHOWN: &str = r"a\u{1b}[2J\u{0}\u{9b}b";

#[test]
fn control_characters_of_names_are_escaped_by_readers() {
    let legacy = vtk(&[VTK, &POINT_DATA.replace(" u ", " a%1b[2J%00%c2%9bb ")].concat()).unwrap();
    assert!(legacy.node_fields.contains_key(SHOWN), "{:?}", legacy.node_fields.keys());
    let xml = replaced(&data("ascii_plain_32.vtu"), "Name=\"half\"", "Name=\"half&#27;[2J\"");
    assert!(vtu(&xml).unwrap().cell_fields.contains_key(r"half\u{1b}[2J"));
    let msh = format!(
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n1\n3 1 \"{NAME}\"\n$EndPhysicalNames\n$Nodes\n4\n1 0 0 0\n\
         2 1 0 0\n3 0 1 0\n4 0 0 1\n$EndNodes\n$Elements\n1\n1 4 2 1 1 1 2 3 4\n$EndElements\n"
    );
    let mesh = io::gmsh::parse(Path::new("a.msh"), msh.as_bytes()).unwrap();
    assert_eq!(mesh.tag_names[&(3, 1)], SHOWN);
}

#[test]
fn control_characters_of_names_do_not_reach_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut mesh = square(&SquareConfig::default()).unwrap();
    let values = vec![1.0; mesh.n_cells()];
    mesh.cell_fields.insert(NAME.into(), Field { n_components: 1, values });
    mesh.tag_names.insert((2, 1), NAME.into());
    for name in ["a.vtu", "a.msh"] {
        io::write(&folder.path().join(name), &mesh).unwrap();
        let bytes = std::fs::read(folder.path().join(name)).unwrap();
        let text: String = String::from_utf8_lossy(&bytes).split("<AppendedData").next().unwrap().into();
        assert!(text.contains(SHOWN) && !text.chars().any(|c| c.is_control() && c != '\n'), "{name}");
    }
    let read = io::read(&folder.path().join("a.vtu")).unwrap();
    assert!(read.cell_fields.contains_key(SHOWN));
}

#[test]
fn exponents_of_fortran_are_read_in_every_text_format() {
    let point = |mesh: Result<Mesh, String>| mesh.map(|mesh| mesh.points[1]);
    assert_eq!(point(vtk(&VTK.replace("1 0 0\n", "1.5D+00 0d0 0\n"))), Ok([1.5, 0.0, 0.0]));
    let medit = "MeshVersionFormatted 2\nDimension 2\nVertices\n3\n0 0 0\n1.5D+00 -0D0 0\n0 1 0\nTriangles\n1\n1 2 3 7\nEnd\n";
    let medit = io::medit::parse(Path::new("a.mesh"), medit.as_bytes());
    assert_eq!(point(medit.map_err(|error| error.to_string())), Ok([1.5, 0.0, 0.0]));
    let xml = data("ascii_plain_32.vtu");
    let fortran = replaced(&xml, "-1", "-1.0D+00");
    assert_eq!(
        vtu(&fortran).unwrap().cell_fields["half"].values,
        vtu(&xml).unwrap().cell_fields["half"].values
    );
}

#[test]
fn attributes_of_a_tetgen_file_are_bounded() {
    let node = format!("1 2 65535 0\n{}\n", "0 ".repeat(65538));
    let error = io::tetgen::parse(Path::new("a.node"), node.as_bytes(), b"", None).unwrap_err().to_string();
    assert!(error.starts_with("a.node: line 1: ") && error.contains("none above 1024"), "{error}");
}

#[test]
fn a_gmsh_file_has_fields_by_element_and_groups_for_all_cells() {
    let points = vec![[0.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]];
    let mut mesh = Mesh::new(points, femtile_mesh::CellKind::Triangle, vec![0, 1, 2, 1, 3, 2]).unwrap();
    mesh.cell_tags = vec![5, 0];
    mesh.facets = femtile_mesh::Facets { nodes: vec![0, 1], tags: vec![2] };
    mesh.cell_fields.insert("sigma".into(), Field { n_components: 1, values: vec![1.5, -2.0] });
    mesh.node_fields.insert("u".into(), Field { n_components: 2, values: (0..8).map(f64::from).collect() });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.msh");
    io::write(&path, &mesh).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let section = |name: &str, nth: usize| {
        let (begin, end) = (format!("${name}\n"), format!("$End{name}"));
        text.split(&begin).nth(nth).unwrap().split(&end).next().unwrap().to_string()
    };
    // The cell without a tag is the first free group, 1.
    assert_eq!(
        section("Entities", 1),
        "0 1 2 0\n2 0.0 0.0 0.0 1.0 1.0 0.0 1 2 0\n1 0.0 0.0 0.0 1.0 1.0 0.0 1 1 0\n5 0.0 0.0 0.0 1.0 1.0 0.0 1 5 0\n"
    );
    assert_eq!(section("Elements", 1), "3 3 1 3\n1 2 1 1\n1 1 2\n2 1 2 1\n2 2 4 3\n2 5 2 1\n3 1 2 3\n");
    assert_eq!(section("ElementData", 1), "1\n\"sigma\"\n1\n0.0\n3\n0\n1\n3\n1 nan\n2 -2.0\n3 1.5\n");
    assert_eq!(section("NodeData", 2), "1\n\"u[1]\"\n1\n0.0\n3\n0\n1\n4\n1 1.0\n2 3.0\n3 5.0\n4 7.0\n");
    let read = io::read(&path).unwrap();
    assert_eq!((read.cell_tags, read.facets), (vec![1, 5], mesh.facets));
}
