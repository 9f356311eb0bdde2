//! `.inp` of AVS, unstructured cell data (UCD), as text; it shares the extension with Abaqus.

use std::path::Path;

use super::collect::Collector;
use super::node_numbers::NodeNumbers;
use super::scanner::{Scanner, show};
use crate::{CellShape, Mesh, MeshError};

/// Reads the bytes of a UCD file; `path` is used in messages only.
///
/// The material of a cell is its tag, that of a line or surface the tag of a facet unless it is 0. Data of nodes and cells are
/// left out, with a note.
///
/// # Errors
/// [`MeshError::Parse`] and [`MeshError::Unsupported`] with the line at which the trouble begins.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Mesh, MeshError> {
    let mut scanner = Scanner::new(path, bytes).with_comments(b'#').by_lines();
    scanner.next_line();
    let n_nodes = scanner.count("nodes", 8)?;
    let n_cells = scanner.count("cells", 8)?;
    let n_data =
        [scanner.integer::<u32>("the number of data of a node")?, scanner.integer("that of a cell")?];
    scanner.integer::<u32>("the number of data of the model")?;
    scanner.end_of_line("the numbers of data")?;
    let (mut points, mut numbers) = (Vec::with_capacity(n_nodes), Vec::with_capacity(n_nodes));
    for _ in 0..n_nodes {
        scanner.next_line();
        numbers.push(scanner.integer("the number of a node")?);
        points.push([scanner.coordinate()?, scanner.coordinate()?, scanner.coordinate()?]);
        scanner.end_of_line("a node")?;
    }
    let numbers = NodeNumbers::new(&numbers)
        .map_err(|number| scanner.error(format!("two nodes have the number {number}")))?;
    let mut collector = Collector::default();
    for _ in 0..n_cells {
        scanner.next_line();
        scanner.integer::<u64>("the number of a cell")?;
        let tag = scanner.integer("the material of a cell")?;
        let Some(shape) = shape(&mut scanner)? else {
            scanner.rest_of_line();
            collector.skip();
            continue;
        };
        let mut nodes = [0; 8];
        for node in &mut nodes[..shape.n_nodes()] {
            let number = scanner.integer("a node of a cell")?;
            *node = numbers
                .find(number)
                .ok_or_else(|| scanner.error(format!("a cell uses node {number}, which no line defines")))?;
        }
        scanner.end_of_line(&format!("a {shape}"))?;
        let nodes = &mut nodes[..shape.n_nodes()];
        if shape == CellShape::Pyramid {
            // The apex comes first.
            nodes.rotate_left(1);
        }
        collector.push(shape, nodes.iter().copied(), tag);
    }
    let mut mesh = collector.into_mesh(path, points, true)?.mesh;
    if n_data != [0; 2] {
        mesh.notes.push("data of nodes and cells of a UCD file are left out".into());
    }
    Ok(mesh)
}

/// Reads the name of a shape of cells; none for a point.
fn shape(scanner: &mut Scanner<'_>) -> Result<Option<CellShape>, MeshError> {
    let word = scanner.expect("the kind of a cell")?;
    Ok(Some(match word.to_ascii_lowercase().as_slice() {
        b"pt" => return Ok(None),
        b"line" => CellShape::Segment,
        b"tri" => CellShape::Triangle,
        b"quad" => CellShape::Quadrilateral,
        b"tet" => CellShape::Tetrahedron,
        b"pyr" => CellShape::Pyramid,
        b"prism" => CellShape::Prism,
        b"hex" => CellShape::Hexahedron,
        _ => {
            let advice = "`tri`, `quad`, `tet`, `pyr`, `prism` and `hex` can be read, with `line` and `pt` beside them";
            return Err(scanner.unsupported(format!("the UCD cell `{}`", show(word)), advice));
        }
    }))
}

/// Returns whether a file is one of UCD: after comments it begins with a number.
pub(super) fn is_ucd(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let first = lines.find(|line| !line.is_empty() && !line.starts_with(b"#"));
    first.is_some_and(|line| line[0].is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two squares, with a point, an edge with a material and one without.
    const SQUARES: &str = "# made by hand\n# twice\n6 5 1 0 0\n10 0 0 0\n20 1 0 0\n30 2 0 0\n11 0 1 0\n21 1 1 0\n31 2 1 0\n\
                           1 0 pt 10\n2 4 line 10 20\n3 0 line 20 30\n4 7 quad 10 20 21 11\n5 8 QUAD 20 30 31 21\n\
                           1 1\nu, K\n10 1.5\n";

    fn read(text: &str) -> Result<Mesh, String> {
        parse(Path::new("a.inp"), text.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn materials_are_tags_and_data_are_left_out_with_a_note() {
        let mesh = read(SQUARES).unwrap();
        assert_eq!(
            (mesh.kind, &mesh.cells[..]),
            (crate::CellKind::Quadrilateral, &[0, 1, 4, 3, 1, 2, 5, 4][..])
        );
        assert_eq!((&mesh.cell_tags[..], &mesh.facets.tags[..]), (&[7, 8][..], &[4][..]));
        assert_eq!((&mesh.facets.nodes[..], mesh.points[5]), (&[0, 1][..], [2.0, 1.0, 0.0]));
        assert_eq!(mesh.notes.len(), 1);
        assert!(is_ucd(SQUARES.as_bytes()) && !is_ucd(b"*NODE\n1,0,0\n") && !is_ucd(b"# none\n"));
    }

    #[test]
    fn faults_are_told_with_their_lines() {
        for (from, to, expected) in [
            ("6 5 1", "600 5 1", "line 3: 600 nodes are announced"),
            ("20 30 31 21", "20 30 32 21", "line 14: a cell uses node 32, which no line defines"),
            ("20 30 31 21", "20 30 31", "line 14: the line ends where a node of a cell"),
            ("31 2 1 0", "30 2 1 0", "two nodes have the number 30"),
            ("QUAD", "poly", "line 14: the UCD cell `poly` is not supported"),
            ("2 1 0\n", "2 nan 0\n", "line 9: a coordinate is NaN"),
        ] {
            let said = read(&SQUARES.replacen(from, to, 1)).unwrap_err();
            assert!(said.contains(expected), "`{said}` should contain `{expected}`");
        }
        for end in 0..SQUARES.find("1 1\nu").unwrap() - 1 {
            assert!(read(&SQUARES[..end]).is_err(), "{end}");
        }
    }
}
