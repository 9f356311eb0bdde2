use std::path::Path;

use super::files::{Files, files, find, with};
use super::solids::put_in_order;
use super::surface::facets;
use crate::io::collect::{Collected, Collector, insert_fields};
use crate::io::scanner::{Scanner, show};
use crate::{CellShape, Field, Mesh, MeshError};

/// Reads a mesh given by the name of one of its files, or without extension: `.pts` and `.elem`, fibres of `.lon` and
/// surfaces `name.PART.surf`, if there are any.
///
/// # Errors
/// [`MeshError::Io`] when a file cannot be read, else those of [`parse`].
pub fn read(path: &Path) -> Result<Mesh, MeshError> {
    let base = find(path).unwrap_or_else(|| path.into());
    parse(&base, &files(&base)?)
}

/// Reads the bytes of the files of a mesh; `base`, its name without extension, is used in messages only.
///
/// Coordinates are kept as they are: openCARP means micrometres. Regions are tags of cells, fibres the cell field `fibre`,
/// sheets `sheet`; elements of one dimension less are tagged facets, unless their region is 0. Each surface is a part of the
/// boundary with its name.
///
/// # Errors
/// [`MeshError::Parse`] and [`MeshError::Unsupported`] with the file and its line.
pub fn parse(base: &Path, files: &Files) -> Result<Mesh, MeshError> {
    let points = points(&with(base, "pts"), &files.pts)?;
    let (path, mut collector) = (with(base, "elem"), Collector::default());
    cells(&path, &files.elem, points.len(), &mut collector)?;
    let n_entries = collector.len();
    for shape in [CellShape::Hexahedron, CellShape::Prism] {
        put_in_order(shape, collector.nodes_mut(shape), &points);
    }
    let Collected { mut mesh, entries, numbers, .. } = collector.into_mesh(&path, points, true)?;
    if let Some(lon) = &files.lon {
        let fields = fibres(&with(base, "lon"), lon, n_entries)?;
        insert_fields(&mut mesh, &entries, fields.into_iter().map(|(name, field)| (name.into(), field)));
    }
    for (name, bytes) in &files.surfaces {
        facets(&with(base, &format!("{name}.surf")), bytes, name, &numbers, &mut mesh)?;
    }
    Ok(mesh)
}

fn points(path: &Path, bytes: &[u8]) -> Result<Vec<[f64; 3]>, MeshError> {
    let mut scanner = Scanner::new(path, bytes).with_comments(b'#');
    let n = scanner.count("nodes", 6)?;
    let mut points = Vec::with_capacity(n);
    for _ in 0..n {
        points.push([scanner.coordinate()?, scanner.coordinate()?, scanner.coordinate()?]);
        scanner.end_of_line("a node")?;
    }
    end(&mut scanner, n, "nodes")?;
    Ok(points)
}

/// Refuses data after the records that the first line announces.
pub(super) fn end(scanner: &mut Scanner<'_>, n: usize, what: &str) -> Result<(), MeshError> {
    match scanner.word() {
        None => Ok(()),
        Some(_) => Err(scanner.error(format!("more than the {n} {what} that the first line announces"))),
    }
}

fn cells(path: &Path, bytes: &[u8], n_points: usize, collector: &mut Collector) -> Result<(), MeshError> {
    let mut scanner = Scanner::new(path, bytes).with_comments(b'#');
    let n = scanner.count("elements", 7)?;
    let mut nodes = [0; 8];
    for _ in 0..n {
        let Some(shape) = shape(&mut scanner)? else {
            scanner.rest_of_line();
            collector.skip();
            continue;
        };
        let nodes = &mut nodes[..shape.n_nodes()];
        for node in &mut *nodes {
            *node = self::node(&mut scanner, n_points)?;
        }
        // The region may be missing, and is 0 then.
        let tag = match scanner.clone().word_of_line() {
            Some(_) => scanner.integer("a region")?,
            None => 0,
        };
        scanner.end_of_line("an element")?;
        collector.push(shape, nodes.iter().copied(), tag);
    }
    end(&mut scanner, n, "elements")
}

/// Reads the number of a node.
pub(super) fn node(scanner: &mut Scanner<'_>, n_points: usize) -> Result<u32, MeshError> {
    let node: usize = scanner.integer("a node")?;
    match node < n_points {
        true => Ok(node as u32),
        false => {
            Err(scanner.error(format!("node {node}, but nodes are numbered 0 to {}", n_points as i64 - 1)))
        }
    }
}

/// Reads the shape of an element; none for a connection of two nodes, which is left out.
fn shape(scanner: &mut Scanner<'_>) -> Result<Option<CellShape>, MeshError> {
    let name = scanner.expect("the kind of an element, such as `Tt`,")?;
    let shape = match name {
        b"Tt" => CellShape::Tetrahedron,
        b"Py" => CellShape::Pyramid,
        b"Pr" => CellShape::Prism,
        b"Hx" => CellShape::Hexahedron,
        b"Tr" => CellShape::Triangle,
        b"Qd" => CellShape::Quadrilateral,
        b"Ln" => CellShape::Segment,
        b"cH" => return Ok(None),
        b"Oc" => return Err(scanner.unsupported("an octahedron (`Oc`)", "split it into tetrahedra")),
        other => {
            let message = format!(
                "`{}` is no kind of element; `Tt`, `Py`, `Pr`, `Hx`, `Tr` and `Qd` can be read",
                show(other)
            );
            return Err(scanner.error(message));
        }
    };
    Ok(Some(shape))
}

/// Reads one or two directions for each element. The number of directions stands on the first line; old files lack it.
fn fibres(path: &Path, bytes: &[u8], n: usize) -> Result<Vec<(&'static str, Field)>, MeshError> {
    let mut scanner = Scanner::new(path, bytes).with_comments(b'#');
    let n_directions = match scanner.n_words_of_next_line() {
        1 => scanner.integer("the number of directions")?,
        n_words => n_words / 3,
    };
    if !(1..=2).contains(&n_directions) {
        return Err(scanner.error(format!(
            "{n_directions} directions for each element; 1, that of the fibres, or 2, with that of the sheets, can be read"
        )));
    }
    scanner.announce(n, "elements of the `.elem` file", 6 * n_directions)?;
    let field = || Field { n_components: 3, values: Vec::with_capacity(3 * n) };
    let mut fields: Vec<_> = ["fibre", "sheet"][..n_directions].iter().map(|&name| (name, field())).collect();
    for _ in 0..n {
        for (name, field) in &mut fields {
            for _ in 0..3 {
                field.values.push(scanner.real(&format!("a component of a {name}"))?);
            }
        }
        scanner.end_of_line("the directions of an element")?;
    }
    match scanner.word() {
        None => Ok(fields),
        Some(_) => {
            Err(scanner.error(format!("directions of more than the {n} elements of the `.elem` file")))
        }
    }
}
