use std::path::Path;

use super::nodes::{Nodes, read_nodes};
use crate::io::collect::{Collector, note_of_straightened};
use crate::io::file::bytes_of;
use crate::io::scanner::{Scanner, show};
use crate::plane::flatten;
use crate::simplices::is_collapsed;
use crate::{CellKind, CellShape, Mesh, MeshError, Place};

/// Reads a mesh file of MFEM.
///
/// # Errors
/// [`MeshError::Io`] when the file cannot be read, else those of [`parse`].
pub fn read(path: &Path) -> Result<Mesh, MeshError> {
    parse(path, &bytes_of(path)?)
}

/// Reads the bytes of an MFEM mesh file; `path` is used in messages only.
///
/// Attributes of elements are the tags of cells, those of boundary elements the tags of facets. Nodes in a
/// finite element space become evenly spaced points of curved cells. If the space is discontinuous, as in
/// periodic meshes, cells share none of them. Triangles and tetrahedra of order 2 are read as straight.
///
/// # Errors
/// [`MeshError::Parse`] and [`MeshError::Unsupported`] with the line at which the trouble begins.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Mesh, MeshError> {
    let mut scanner = Scanner::new(path, bytes).with_comments(b'#');
    begin(&mut scanner)?;
    section(&mut scanner, b"dimension")?;
    let dimension: usize = scanner.integer("the dimension")?;
    if !(2..=3).contains(&dimension) {
        return Err(scanner.error(format!("dimension {dimension}; 2 and 3 can be read")));
    }
    let mut collector = Collector::default();
    section(&mut scanner, b"elements")?;
    let elements = read_elements(&mut scanner, dimension, &mut collector)?;
    section(&mut scanner, b"boundary")?;
    let boundary = read_elements(&mut scanner, dimension - 1, &mut collector)?;
    section(&mut scanner, b"vertices")?;
    let vertices = Vertices::new(&mut scanner, &[&elements.nodes, &boundary.nodes])?;
    let mut nodes = match scanner.peek() {
        Some(b"nodes") => {
            scanner.word();
            let Some(kind) = elements.kind else {
                let advice = "save the mesh without `nodes`, or mesh it with one of the other kinds";
                return Err(scanner.unsupported("nodes of prisms, pyramids or mixed kinds of cells", advice));
            };
            let cells: Vec<u32> = elements.nodes.iter().map(|&i| vertices.numbers[i as usize]).collect();
            let nodes = read_nodes(&mut scanner, kind, &cells, vertices.n_used)?;
            let collapsed = || cells.chunks_exact(kind.n_nodes()).position(is_collapsed);
            if let Some(cell) = nodes.curved.as_ref().and_then(|_| collapsed()) {
                let what = format!("`nodes` of cell {cell}, a {kind} with repeated vertices");
                let advice = "a curved cell needs distinct corners: correct its vertices, or save the mesh without `nodes`";
                return Err(scanner.unsupported(what, advice));
            }
            Nodes { points: vertices.spread(&nodes.points), ..nodes }
        }
        _ => Nodes { points: vertices.read_points(&mut scanner)?, ..Nodes::default() },
    };
    let heights: Vec<f64> = nodes.points.iter().map(|point| point[2]).collect();
    let mut mesh = collector.into_mesh(path, std::mem::take(&mut nodes.points), true)?.mesh;
    if nodes.is_straightened {
        mesh.notes.extend(note_of_straightened(mesh.kind.into(), 2, mesh.n_cells(), None));
    }
    mesh.curved = nodes.curved;
    if let Some(curved) = mesh.curved.as_mut().filter(|_| dimension == 2) {
        // The corners are in a plane or not as the whole of the cells is.
        mesh.is_surface = !flatten(&mut curved.points, &[&curved.cells]);
        let of_corner = |height| if mesh.is_surface { height } else { 0.0 };
        mesh.points.iter_mut().zip(heights).for_each(|(point, height)| point[2] = of_corner(height));
    }
    let whole = |error: MeshError| MeshError::Parse {
        path: path.into(),
        place: Place::Whole,
        message: error.to_string(),
    };
    mesh.validate().map_err(whole)?;
    Ok(mesh)
}

/// Returns whether a file is one of MFEM, by its first bytes; MEDIT shares the extension.
pub(in crate::io) fn is_mfem(bytes: &[u8]) -> bool {
    bytes.trim_ascii_start().starts_with(b"MFEM ")
}

/// Reads the first line.
fn begin(scanner: &mut Scanner<'_>) -> Result<(), MeshError> {
    let line = scanner.rest_of_line();
    match line {
        b"MFEM mesh v1.0" | b"MFEM mesh v1.2" | b"MFEM mesh v1.3" => Ok(()),
        _ if is_mfem(line) => {
            let advice = "`MFEM mesh v1.0`, `v1.2` and `v1.3` can be read: conforming meshes without NURBS";
            Err(scanner.unsupported(format!("a file that begins with `{}`", show(line)), advice))
        }
        _ => Err(scanner.error("a mesh of MFEM begins with `MFEM mesh v1.0`")),
    }
}

/// Reads the name of a section; sets of attributes before it, which version 1.3 has, are skipped.
fn section(scanner: &mut Scanner<'_>, name: &[u8]) -> Result<(), MeshError> {
    let mut word = scanner.expect(&format!("`{}`", show(name)))?;
    if matches!(word, b"attribute_sets" | b"bdr_attribute_sets") {
        while word != name {
            word = scanner.expect(&format!("`{}`", show(name)))?;
        }
    }
    if word == name {
        return Ok(());
    }
    Err(scanner.error(format!("`{}` should stand here, not `{}`", show(name), show(word))))
}

/// Nodes of all elements of a section, and their kind if all are of one.
struct Elements {
    nodes: Vec<u32>,
    kind: Option<CellKind>,
}

fn read_elements(
    scanner: &mut Scanner<'_>,
    dimension: usize,
    collector: &mut Collector,
) -> Result<Elements, MeshError> {
    let n = scanner.count("elements", 6)?;
    let mut elements = Elements { nodes: Vec::new(), kind: None };
    let mut shapes = None;
    let mut is_mixed = false;
    for _ in 0..n {
        let attribute: i32 = scanner.integer("an attribute")?;
        let shape = geometry(scanner)?;
        if shape.dimension() != dimension {
            return Err(scanner.error(format!("a {shape} where cells of dimension {dimension} should stand")));
        }
        let begin = elements.nodes.len();
        for _ in 0..shape.n_nodes() {
            elements.nodes.push(scanner.integer("a vertex")?);
        }
        scanner.end_of_line("an element")?;
        collector.push(shape, elements.nodes[begin..].iter().copied(), attribute);
        is_mixed |= *shapes.get_or_insert(shape) != shape;
    }
    elements.kind = shapes.filter(|_| !is_mixed).and_then(CellShape::kind);
    Ok(elements)
}

fn geometry(scanner: &mut Scanner<'_>) -> Result<CellShape, MeshError> {
    let number: u32 = scanner.integer("a type of geometry")?;
    let name = match number {
        1 => return Ok(CellShape::Segment),
        2 => return Ok(CellShape::Triangle),
        3 => return Ok(CellShape::Quadrilateral),
        4 => return Ok(CellShape::Tetrahedron),
        5 => return Ok(CellShape::Hexahedron),
        6 => return Ok(CellShape::Prism),
        7 => return Ok(CellShape::Pyramid),
        0 => "point",
        _ => "unknown",
    };
    let advice = "triangles, quadrilaterals, tetrahedra, prisms, pyramids and hexahedra can be read";
    Err(scanner.unsupported(format!("MFEM geometry {number} ({name})"), advice))
}

/// Vertices of the file; nodes count only those that some element uses.
struct Vertices {
    /// Number of each vertex among those that are used.
    numbers: Vec<u32>,
    n_used: usize,
}

const UNUSED: u32 = u32::MAX;

impl Vertices {
    /// Reads their count.
    fn new(scanner: &mut Scanner<'_>, elements: &[&[u32]]) -> Result<Self, MeshError> {
        let n: usize = scanner.integer("the number of vertices")?;
        let largest = elements.iter().flat_map(|nodes| nodes.iter()).max().map_or(0, |&node| node as usize);
        if largest >= n {
            return Err(scanner.error(format!("an element uses vertex {largest}, but there are {n}")));
        }
        // Vertices beyond the last one that is used have no number to remember.
        let mut numbers = vec![UNUSED; scanner.announce(largest + 1, "vertices", 2)?];
        elements.iter().flat_map(|nodes| nodes.iter()).for_each(|&node| numbers[node as usize] = 0);
        let mut n_used = 0;
        for number in numbers.iter_mut().filter(|number| **number == 0) {
            *number = n_used;
            n_used += 1;
        }
        Ok(Self { numbers, n_used: n_used as usize })
    }

    /// Returns the points of all vertices from those of the used vertices.
    fn spread(&self, points: &[[f64; 3]]) -> Vec<[f64; 3]> {
        let of = |&number: &u32| points.get(number as usize).copied().unwrap_or_default();
        self.numbers.iter().map(of).collect()
    }

    /// Reads the number of coordinates and the vertices.
    fn read_points(&self, scanner: &mut Scanner<'_>) -> Result<Vec<[f64; 3]>, MeshError> {
        let dimension: usize = scanner.integer("the number of coordinates")?;
        if !(2..=3).contains(&dimension) {
            return Err(scanner.error(format!("{dimension} coordinates; 2 and 3 can be read")));
        }
        let mut points = Vec::with_capacity(self.numbers.len());
        for _ in 0..self.numbers.len() {
            let mut point = [0.0; 3];
            for x in &mut point[..dimension] {
                *x = scanner.coordinate()?;
            }
            points.push(point);
        }
        Ok(points)
    }
}
