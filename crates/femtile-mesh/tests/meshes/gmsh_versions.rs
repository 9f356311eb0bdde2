//! Versions 1 and 4.0 of Gmsh's format.

use femtile_mesh::io::gmsh::parse;
use femtile_mesh::{CellKind, Mesh};

fn read(bytes: &[u8]) -> Result<Mesh, String> {
    parse("a.msh".as_ref(), bytes).map_err(|error| error.to_string())
}

/// Two squares with an edge in a group, a point, and an element of order 2 that lies on the boundary.
const VERSION_1: &str = "$NOD\n7\n1 0 0 0\n2 1 0 0\n3 2 0 0\n14 0 1 0\n15 1 1 0\n16 2 1 0\n20 0.5 0 0\n$ENDNOD\n$ELM\n6\n\
                         1 15 9 1 1 1\n2 8 5 1 3 1 2 20\n3 1 0 1 2 2 3\n4 3 7 1 4 1 2 15 14\n5 3 -8 2 4 2 3 16 15\n\
                         6 3 9 2 4 2 3 16 15\n$ENDELM\n";

#[test]
fn version_1_is_read_as_version_2_is() {
    let mesh = read(VERSION_1.as_bytes()).unwrap();
    assert_eq!((mesh.kind, &mesh.cells[..]), (CellKind::Quadrilateral, &[0, 1, 4, 3, 1, 2, 5, 4][..]));
    assert_eq!((&mesh.cell_tags[..], &mesh.facets.tags[..]), (&[7, 8][..], &[5][..]));
    assert_eq!((&mesh.facets.nodes[..], mesh.points[5]), (&[0, 1][..], [2.0, 1.0, 0.0]));
    assert!(mesh.notes[0].contains("1 of 8 is not in 9"), "{:?}", mesh.notes);
    // The same in version 2.2.
    let mut later = VERSION_1
        .replace("$NOD", "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes")
        .replace("$ELM", "$Elements");
    later = later.replace("$ENDNOD", "$EndNodes").replace("$ENDELM", "$EndElements");
    for (from, to) in [
        ("15 9 1 1 1\n", "15 2 9 1 1\n"),
        ("8 5 1 3 1 2 20", "8 2 5 1 1 2 20"),
        ("1 0 1 2 2 3", "1 2 0 1 2 3"),
        ("3 7 1 4 1", "3 2 7 1 1"),
        ("3 -8 2 4 2", "3 2 -8 2 2"),
        ("3 9 2 4 2", "3 2 9 2 2"),
    ] {
        assert_eq!(later.matches(from).count(), 1, "{from}");
        later = later.replace(from, to);
    }
    assert_eq!(read(later.as_bytes()).unwrap(), mesh);
    for (from, to, expected) in [
        ("4 3 7 1 4 1 2", "4 3 7 1 3 1 2", "line 16: an element of type 3 has 3 nodes, not 4"),
        ("1 2 15 14", "1 2 15 19", "line 16: an element uses node 19"),
        ("$ENDNOD", "$EndNodes", "line 10: `$ENDNOD` should stand here, not `$EndNodes`"),
        ("$ELM", "$NOD", "line 11: a second section `$NOD`"),
        ("$NOD\n7", "$NOD\n700", "line 2: 700 nodes are announced"),
    ] {
        let said = read(VERSION_1.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert!(said.contains(expected), "`{said}` should contain `{expected}`");
    }
}

/// A number of the C types `int`, `unsigned long` and `double`, or the end of a line of text.
enum Part {
    I(i32),
    U(u64),
    R(f64),
    End,
}

use Part::{End, I, R, U};

#[derive(Clone, Copy, PartialEq)]
enum Encoding {
    Text,
    Little,
    Big,
}

fn section(name: &str, parts: &[Part], encoding: Encoding) -> Vec<u8> {
    let mut bytes = format!("${name}\n").into_bytes();
    for part in parts {
        let (text, mut binary) = match part {
            I(value) => (format!("{value} "), value.to_le_bytes().to_vec()),
            U(value) => (format!("{value} "), value.to_le_bytes().to_vec()),
            R(value) => (format!("{value} "), value.to_le_bytes().to_vec()),
            End => ("\n".into(), Vec::new()),
        };
        if encoding == Encoding::Big {
            binary.reverse();
        }
        bytes.extend(if encoding == Encoding::Text { text.into_bytes() } else { binary });
    }
    bytes.extend(format!("\n$End{name}\n").bytes());
    bytes
}

/// A tetrahedron in group 7, a face of it in two groups, and a node with parameters.
fn version_4_0(encoding: Encoding) -> Vec<u8> {
    let mark: &[u8] = match encoding {
        Encoding::Text => b"4 0 8",
        Encoding::Little => b"4 1 8\n\x01\0\0\0",
        Encoding::Big => b"4 1 8\n\0\0\0\x01",
    };
    let bounds = || (0..6).map(|i| R(f64::from(i)));
    let mut entities = vec![U(1), U(0), U(1), U(1), End, I(3)];
    // Points have a box of six numbers too.
    entities.extend(bounds());
    entities.extend([U(1), I(2), End, I(5)]);
    entities.extend(bounds());
    entities.extend([U(2), I(8), I(-9), U(1), I(1), End, I(6)]);
    entities.extend(bounds());
    entities.extend([U(1), I(7), U(0), End]);
    let mut nodes = vec![U(2), U(4), End, I(5), I(2), I(1), U(3), End];
    for (number, point) in [(11, [0.0, 0.0]), (12, [1.0, 0.0]), (14, [0.0, 1.5])] {
        nodes.extend([I(number), R(point[0]), R(point[1]), R(0.0), R(0.25), R(0.75), End]);
    }
    nodes.extend([I(6), I(3), I(0), U(1), End, I(13), R(0.0), R(0.0), R(1.0), End]);
    let elements = [U(3), U(3), End, I(3), I(0), I(15), U(1), End, I(1), I(11), End];
    let face = [I(5), I(2), I(2), U(1), End, I(2), I(11), I(12), I(14), End];
    let cell = [I(6), I(3), I(4), U(1), End, I(3), I(11), I(12), I(14), I(13), End];
    let elements: Vec<Part> = elements.into_iter().chain(face).chain(cell).collect();
    let mut bytes = [b"$MeshFormat\n", mark, b"\n$EndMeshFormat\n"].concat();
    bytes.extend(b"$PhysicalNames\n1\n3 7 \"part\"\n$EndPhysicalNames\n");
    for (name, parts) in [("Entities", &entities), ("Nodes", &nodes), ("Elements", &elements)] {
        bytes.extend(section(name, parts, encoding));
    }
    bytes
}

#[test]
fn version_4_0_is_read_as_text_and_in_both_orders_of_bytes() {
    let mesh = read(&version_4_0(Encoding::Text)).unwrap();
    assert_eq!((mesh.kind, &mesh.cells[..]), (CellKind::Tetrahedron, &[0, 1, 2, 3][..]));
    assert_eq!((&mesh.cell_tags[..], &mesh.facets.tags[..]), (&[7][..], &[8, 9][..]));
    assert_eq!(
        (&mesh.facets.nodes[..], &mesh.points[2..]),
        (&[0, 1, 2, 0, 1, 2][..], &[[0.0, 1.5, 0.0], [0.0, 0.0, 1.0]][..])
    );
    assert_eq!(mesh.tag_names[&(3, 7)], "part");
    for encoding in [Encoding::Little, Encoding::Big] {
        assert_eq!(read(&version_4_0(encoding)).unwrap(), mesh);
    }
    let text = String::from_utf8(version_4_0(Encoding::Text)).unwrap();
    for (from, to, expected) in [
        ("2 4 \n5 2 1 3", "2 4 \n5 2 1 9", "blocks hold more than the 4 nodes announced"),
        ("2 4 \n5 2 1 3", "1 4 \n5 2 1 3", "4 nodes are announced, but blocks hold 3"),
        ("3 3 \n3 0 15 1", "3 2 \n3 0 15 1", "blocks hold more than the 2 elements announced"),
        ("4 0 8", "4.2 0 8", "version 4.2 of the format is not supported"),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        let said = read(text.replace(from, to).as_bytes()).unwrap_err();
        assert!(said.contains(expected), "`{said}` should contain `{expected}`");
    }
}

#[test]
fn files_of_old_versions_that_are_cut_or_damaged_are_refused_or_read() {
    let encodings = [Encoding::Text, Encoding::Little, Encoding::Big].map(version_4_0);
    for bytes in encodings.iter().map(Vec::as_slice).chain([VERSION_1.as_bytes()]) {
        let mark = bytes.windows(5).rposition(|window| window.eq_ignore_ascii_case(b"$endE")).unwrap();
        for end in 0..=mark {
            assert!(read(&bytes[..end]).is_err(), "{end}");
        }
        let n_found = (0..bytes.len())
            .flat_map(|at| [0, 0x7f, 0xff, b'-', b'9'].map(|byte| (at, byte)))
            .filter(|&(at, byte)| {
                let mut damaged = bytes.to_vec();
                damaged[at] = byte;
                read(&damaged).is_ok_and(|mesh| mesh.validate().is_ok())
            });
        assert!(n_found.count() > 0);
    }
}
