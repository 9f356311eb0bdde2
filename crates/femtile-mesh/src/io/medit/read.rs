use std::path::Path;

use crate::io::collect::Collector;
use crate::io::file::bytes_of;
use crate::io::number;
use crate::io::scanner::{Scanner, show};
use crate::{CellShape, Mesh, MeshError, Place};

/// Reads a MEDIT file.
///
/// # Errors
/// [`MeshError::Io`] when the file cannot be read, else those of [`parse`].
pub fn read(path: &Path) -> Result<Mesh, MeshError> {
    parse(path, &bytes_of(path)?)
}

/// Reads the bytes of a MEDIT file; `path` is used in messages only.
///
/// The reference number of a cell is its tag, that of a facet too unless it is 0. Corners, ridges,
/// normals and other blocks of numbers are skipped, as are texts in quotes, which bamg writes. Keywords may have letters of
/// either case. Triangles and tetrahedra of order 2 are read as straight.
///
/// # Errors
/// [`MeshError::Parse`] and [`MeshError::Unsupported`] with the line at which the trouble begins.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Mesh, MeshError> {
    let mut scanner = Scanner::new(path, bytes).with_comments(b'#');
    begin(&mut scanner)?;
    let mut dimension = 3;
    let mut points = None;
    let mut collector = Collector::default();
    while let Some(word) = scanner.word() {
        let (shape, n_nodes) = match &*word.to_ascii_lowercase() {
            b"end" => break,
            b"dimension" => {
                dimension = scanner.integer("the dimension")?;
                if !(2..=3).contains(&dimension) {
                    return Err(scanner.error(format!("dimension {dimension}; 2 and 3 can be read")));
                }
                continue;
            }
            b"vertices" => {
                points = Some(vertices(&mut scanner, dimension)?);
                continue;
            }
            b"edges" => (CellShape::Segment, 2),
            b"edgesp2" => (CellShape::Segment, 3),
            b"triangles" => (CellShape::Triangle, 3),
            b"trianglesp2" => (CellShape::Triangle, 6),
            b"quadrilaterals" => (CellShape::Quadrilateral, 4),
            b"tetrahedra" => (CellShape::Tetrahedron, 4),
            b"tetrahedrap2" => (CellShape::Tetrahedron, 10),
            b"pyramids" => (CellShape::Pyramid, 5),
            b"prisms" | b"wedges" => (CellShape::Prism, 6),
            b"hexahedra" | b"hexaedra" => (CellShape::Hexahedron, 8),
            _ => {
                pass_over(&mut scanner, word)?;
                continue;
            }
        };
        cells(&mut scanner, shape, n_nodes, points.as_deref().unwrap_or_default(), &mut collector)?;
    }
    let points = points.ok_or_else(|| MeshError::Parse {
        path: path.into(),
        place: Place::Whole,
        message: "the file has no `Vertices`".into(),
    })?;
    Ok(collector.into_mesh(path, points, true)?.mesh)
}

fn begin(scanner: &mut Scanner<'_>) -> Result<(), MeshError> {
    match scanner.expect("`MeshVersionFormatted`")? {
        word if word.eq_ignore_ascii_case(b"MeshVersionFormatted") => {
            scanner.integer::<i64>("the version").map(|_| ())
        }
        b"MFEM" => Err(scanner.unsupported("a mesh file of MFEM", "its name has to end in `.mesh`")),
        word => {
            Err(scanner
                .error(format!("a MEDIT file begins with `MeshVersionFormatted`, not `{}`", show(word))))
        }
    }
}

fn vertices(scanner: &mut Scanner<'_>, dimension: usize) -> Result<Vec<[f64; 3]>, MeshError> {
    let n = scanner.count("vertices", 2 * (dimension + 1))?;
    let mut points = Vec::with_capacity(n);
    for _ in 0..n {
        let mut point = [0.0; 3];
        for x in &mut point[..dimension] {
            *x = scanner.coordinate()?;
        }
        scanner.integer::<i64>("the reference of a vertex")?;
        scanner.end_of_line("a vertex")?;
        points.push(point);
    }
    Ok(points)
}

fn cells(
    scanner: &mut Scanner<'_>,
    shape: CellShape,
    n_nodes: usize,
    points: &[[f64; 3]],
    collector: &mut Collector,
) -> Result<(), MeshError> {
    let n = scanner.count("cells", 2 * (n_nodes + 1))?;
    let n_points = points.len();
    let mut nodes = [0; 10];
    let nodes = &mut nodes[..n_nodes];
    for _ in 0..n {
        for node in &mut *nodes {
            let number: usize = scanner.integer("a vertex")?;
            if number == 0 || number > n_points {
                return Err(scanner.error(format!(
                    "a {shape} uses vertex {number}, but vertices are numbered 1 to {n_points}"
                )));
            }
            *node = (number - 1) as u32;
        }
        let tag = scanner.integer("a reference")?;
        scanner.end_of_line("a cell")?;
        match n_nodes > shape.n_nodes() && shape != CellShape::Segment {
            true => collector.push_straightened(shape, nodes, points, tag),
            false => collector.push(shape, nodes[..shape.n_nodes()].iter().copied(), tag),
        }
    }
    Ok(())
}

/// Skips blocks that do not describe cells: a keyword, and numbers and texts in quotes up to the next keyword.
fn pass_over(scanner: &mut Scanner<'_>, keyword: &[u8]) -> Result<(), MeshError> {
    let what = format!("`{}`", show(keyword));
    // Blocks such as `TetrahedraP3` belong to curved cells, and `TrianglesP2Ordering` need not have corners first.
    let lower = keyword.to_ascii_lowercase();
    let name = lower.strip_suffix(b"ordering").unwrap_or(&lower);
    let curved = [b"p2", b"p3", b"p4", b"q2", b"q3", b"q4"].iter().any(|order| name.ends_with(*order));
    if curved {
        let advice = "triangles and tetrahedra of order 1 and 2, linear quadrilaterals, prisms, pyramids and hexahedra can be \
                      read";
        return Err(scanner.unsupported(what, advice));
    }
    if !keyword.first().is_some_and(u8::is_ascii_alphabetic) {
        return Err(scanner.error(format!("{what} stands where a keyword should")));
    }
    loop {
        match scanner.peek() {
            Some(word) if word.starts_with(b"\"") => {
                scanner.skip_past(b"\"");
                if !scanner.skip_past(b"\"") {
                    return Err(scanner.error(format!("the text after {what} has no end: a `\"` is missing")));
                }
            }
            Some(word) if number::real(word).is_some() => _ = scanner.word(),
            _ => return Ok(()),
        }
    }
}
