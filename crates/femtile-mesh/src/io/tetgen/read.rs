use std::path::Path;

use super::index_base::index_base;
use super::table::{Header, Table, further_columns, note_of_columns, open, records};
use crate::io::collect::{Collected, Collector, insert_fields, pick};
use crate::io::file::bytes_of;
use crate::io::scanner::Scanner;
use crate::{CellKind, Field, Mesh, MeshError};

/// Reads a mesh given by the name of its `.node` or `.ele` file, with tagged facets from `.face`
/// (tetrahedra) or `.edge` (triangles), if there is one.
///
/// # Errors
/// [`MeshError::Io`] when a file cannot be read, else those of [`parse`].
pub fn read(path: &Path) -> Result<Mesh, MeshError> {
    let nodes = bytes_of(&path.with_extension("node"))?;
    let cells = bytes_of(&path.with_extension("ele"))?;
    let facets = ["face", "edge"].map(|extension| path.with_extension(extension));
    let facets = facets.iter().find(|path| path.exists()).map(|path| bytes_of(path)).transpose()?;
    parse(path, &nodes, &cells, facets.as_deref())
}

/// Parses the contents of `.node` and `.ele` files, and of a `.face` or `.edge` file if there is one.
///
/// The first cell attribute becomes the cell tag if all its values are integers. All other attributes of cells and
/// nodes become fields `attribute_0`, `attribute_1`, …. Facet markers become facet tags. Each file may number nodes
/// from 0 or from 1. Columns that a header does not announce are ignored, with a note. Quadratic cells are straightened.
///
/// # Errors
/// [`MeshError::Parse`] and [`MeshError::Unsupported`], with the line (in binary files the byte).
pub fn parse(path: &Path, node: &[u8], ele: &[u8], face: Option<&[u8]>) -> Result<Mesh, MeshError> {
    let node_path = path.with_extension("node");
    let Nodes { points, fields, base, dimension, mut notes } = nodes(&node_path, node)?;
    let n_points = points.len();
    let ele_path = path.with_extension("ele");
    let (scanner, header) = open(&ele_path, ele, "cells", 8)?;
    let (kind, n_nodes) = cell_kind(&scanner, &header, dimension)?;
    let table = records(scanner, &header, n_nodes, header.counts[1], "cells")?;
    let base = index_base(table.nodes.iter().copied(), n_points, base);
    let tags = if table.n_attributes > 0 { table.tags(0).ok() } else { None };
    notes.extend(table.has_further_columns.then(|| note_of_columns(&ele_path)));
    let mut collector = Collector::default();
    let mut of_cell = Vec::with_capacity(n_nodes);
    for (cell, nodes) in table.nodes.chunks_exact(n_nodes).enumerate() {
        check_range(&table, "cell", cell, nodes, base, n_points)?;
        let tag = tags.as_ref().map_or(0, |tags| tags[cell]);
        of_cell.clear();
        of_cell.extend(nodes.iter().map(|&node| (node - base) as u32));
        match n_nodes > kind.n_nodes() {
            true => collector.push_straightened(kind, &of_cell, &points, tag),
            false => collector.push(kind, of_cell.iter().copied(), tag),
        }
    }
    if let (Some(face), Some(facet)) = (face, kind.facet_kind()) {
        let extension = if dimension == 3 { "face" } else { "edge" };
        let path = path.with_extension(extension);
        let is_quadratic = n_nodes > kind.n_nodes();
        let has_further = facets(&path, face, (facet, is_quadratic), base, n_points, &mut collector)?;
        notes.extend(has_further.then(|| note_of_columns(&path)));
    }
    let Collected { mut mesh, entries, nodes: kept, .. } = collector.into_mesh(path, points, true)?;
    if tags.is_none() {
        mesh.cell_tags.clear();
    }
    // If the file of cells has none, the facets are the cells, and have no attributes.
    let n_fields = if table.nodes.is_empty() { 0 } else { table.n_attributes };
    for column in usize::from(tags.is_some())..n_fields {
        let values = table.column(column).collect();
        insert_fields(
            &mut mesh,
            &entries,
            [(format!("attribute_{column}"), Field { n_components: 1, values })],
        );
    }
    for (column, values) in fields.into_iter().enumerate() {
        let mut field = Field { n_components: 1, values };
        if let Some(kept) = &kept {
            pick(kept, &mut field);
        }
        mesh.node_fields.insert(format!("attribute_{column}"), field);
    }
    mesh.notes.extend(notes);
    Ok(mesh)
}

struct Nodes {
    points: Vec<[f64; 3]>,
    fields: Vec<Vec<f64>>,
    base: i64,
    dimension: usize,
    notes: Vec<String>,
}

fn nodes(path: &Path, bytes: &[u8]) -> Result<Nodes, MeshError> {
    let (mut scanner, header) = open(path, bytes, "nodes", 6)?;
    let [dimension, n_attributes, n_markers] = header.counts;
    if !(2..=3).contains(&dimension) || n_markers > 1 {
        return Err(scanner.error(format!(
            "the header says dimension {dimension} with {n_markers} markers; 2 or 3 and 0 or 1 can be read"
        )));
    }
    let n_columns = dimension + n_attributes + n_markers;
    // Markers are not used, and may be missing.
    let least = if header.binary { 8 * n_columns } else { 2 * (1 + n_columns - n_markers) };
    let n = scanner.announce(header.n_records, "nodes", least)?;
    let mut result =
        Nodes { points: Vec::with_capacity(n), fields: Vec::new(), base: 0, dimension, notes: Vec::new() };
    let mut has_further = false;
    result.fields.resize_with(if n == 0 { 0 } else { n_attributes }, || Vec::with_capacity(n));
    for node in 0..n {
        let mut point = [0.0; 3];
        if header.binary {
            let place = scanner.place();
            let record = scanner.take(least, "nodes")?.as_chunks().0;
            let values = |i: usize| f64::from_le_bytes(record[i]);
            (0..dimension).for_each(|axis| point[axis] = values(axis));
            if point.iter().any(|x| !x.is_finite()) {
                let message = format!("node {node} has a coordinate that is not finite: {point:?}");
                return Err(MeshError::Parse { path: path.into(), place, message });
            }
            result.fields.iter_mut().enumerate().for_each(|(i, field)| field.push(values(dimension + i)));
        } else {
            has_further |= text_node(&mut scanner, &mut result, &mut point, node)? > n_markers;
        }
        result.points.push(point);
    }
    result.notes.extend(has_further.then(|| note_of_columns(path)));
    if !header.binary && scanner.word().is_some() {
        return Err(scanner.error(format!("more than the {n} nodes that the first line announces")));
    }
    Ok(result)
}

/// Reads a node and returns how many columns follow its attributes.
fn text_node(
    scanner: &mut Scanner<'_>,
    nodes: &mut Nodes,
    point: &mut [f64; 3],
    node: usize,
) -> Result<usize, MeshError> {
    scanner.next_line();
    let number: i64 = scanner.integer("the number of a node")?;
    if node == 0 {
        nodes.base = number;
    }
    if !(0..=1).contains(&nodes.base) || number != nodes.base + node as i64 {
        let expected = nodes.base.clamp(0, 1) + node as i64;
        return Err(scanner.error(format!("node {number} stands where node {expected} should")));
    }
    for x in &mut point[..nodes.dimension] {
        *x = scanner.coordinate()?;
    }
    for field in &mut nodes.fields {
        field.push(scanner.real("an attribute")?);
    }
    further_columns(scanner, "a node")
}

/// Returns the kind of the cells and the number of nodes of each, which exceeds its corners if it is of order
/// 2.
fn cell_kind(
    scanner: &Scanner<'_>,
    header: &Header,
    dimension: usize,
) -> Result<(CellKind, usize), MeshError> {
    match (dimension, header.counts[0]) {
        (3, 8) if header.is_product => Ok((CellKind::Hexahedron, 8)),
        (2, 4) if header.is_product => Ok((CellKind::Quadrilateral, 4)),
        (3, n @ (4 | 10)) => Ok((CellKind::Tetrahedron, n)),
        (2, n @ (3 | 6)) => Ok((CellKind::Triangle, n)),
        (_, n) => Err(scanner.unsupported(
            format!("a cell of {n} nodes in {dimension} dimensions"),
            "3 or 6 nodes in two and 4 or 10 nodes in three dimensions can be read",
        )),
    }
}

/// Reads tagged facets, which may have nodes on their edges if cells do. Returns whether there are further
/// columns.
fn facets(
    path: &Path,
    bytes: &[u8],
    (kind, is_quadratic): (CellKind, bool),
    base: i64,
    n_points: usize,
    collector: &mut Collector,
) -> Result<bool, MeshError> {
    let (scanner, header) = open(path, bytes, "facets", 6)?;
    let n_corners = kind.n_nodes();
    // The header says nothing of nodes on edges.
    let n_quadratic = n_corners * (n_corners + 1) / 2;
    let n_words = scanner.n_words_of_next_line();
    let is_quadratic = is_quadratic && !header.binary && n_words > n_quadratic + header.counts[0];
    let n_nodes = if is_quadratic { n_quadratic } else { n_corners };
    let table = records(scanner, &header, n_nodes, header.counts[0], "facets")?;
    if table.n_attributes == 0 {
        return Ok(table.has_further_columns);
    }
    let no_tag = |record| table.error("the marker of facet", record, "is not a whole number of 32 bits");
    let tags = table.tags(0).map_err(no_tag)?;
    let base = index_base(table.nodes.iter().copied(), n_points, base);
    for (facet, (nodes, &tag)) in table.nodes.chunks_exact(n_nodes).zip(&tags).enumerate() {
        check_range(&table, "facet", facet, nodes, base, n_points)?;
        collector.push(kind, nodes[..n_corners].iter().map(|&node| (node - base) as u32), tag);
    }
    Ok(table.has_further_columns)
}

fn check_range(
    table: &Table<'_>,
    what: &str,
    record: usize,
    corners: &[i64],
    base: i64,
    n_points: usize,
) -> Result<(), MeshError> {
    let Some(node) = corners.iter().find(|&&node| node < base || node - base >= n_points as i64) else {
        return Ok(());
    };
    let last = base + n_points as i64 - 1;
    let message = format!("uses node {node}, but nodes are numbered {base} to {last}");
    Err(table.error(what, record, &message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_that_chaste_marks_are_quadrilaterals_and_hexahedra() {
        let node = "8 3 0 0\n0 0 0 0\n1 1 0 0\n2 1 1 0\n3 0 1 0\n4 0 0 1\n5 1 0 1\n6 1 1 1\n7 0 1 1\n";
        let plane = "4 2 0 0\n0 0 0\n1 1 0\n2 1 1\n3 0 1\n";
        for (node, ele, kind) in [
            (node, "1 8 1 HEX\n0 0 1 2 3 4 5 6 7 4\n", CellKind::Hexahedron),
            (plane, "1 4 1\tHEX\n0 0 1 2 3 4\n", CellKind::Quadrilateral),
        ] {
            let of = |ele: &str| parse(Path::new("a.node"), node.as_bytes(), ele.as_bytes(), None);
            let mesh = of(ele).unwrap();
            assert_eq!((mesh.kind, &mesh.cell_tags[..], mesh.volume_by_corners(0)), (kind, &[4][..], 1.0));
            assert!(of(&ele.replace("HEX", "")).unwrap_err().to_string().contains("a cell of"));
        }
    }

    #[test]
    fn facets_that_are_the_cells_have_no_attributes_of_cells() {
        let node = b"4 3 0 0\n0 0 0 0\n1 1 0 0\n2 0 1 0\n3 1 1 0\n";
        let face = b"2 1\n0 0 1 2 5\n1 1 3 2 5\n";
        let mesh = parse(Path::new("a.node"), node, b"0 4 2\n", Some(face)).unwrap();
        mesh.validate().unwrap();
        assert_eq!((mesh.n_cells(), mesh.cell_fields.len()), (2, 0));
    }
}
