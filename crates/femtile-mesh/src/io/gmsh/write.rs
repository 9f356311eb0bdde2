use std::collections::BTreeMap;
use std::io::{Result as IoResult, Write};
use std::path::Path;

use super::element_type::ElementType;
use super::sink::Sink;
use crate::io::format::refuse_curved;
use crate::io::name::printable;
use crate::io::write_atomically;
use crate::{CellKind, Field, Mesh, MeshError, Place};

/// Writes a Gmsh file of version 4.1 as text: each tag becomes an entity and a physical group.
///
/// Cells are written by tag, so their order changes when tags are mixed. If some cells or facets are tagged,
/// those without a tag form a group with the first free number. Fields become `$ElementData` and `$NodeData`.
/// Gmsh shows 1, 3 or 9 components only; other fields become one section per component. Facets have NaN as
/// their values, because all elements must have one for `meshio`.
///
/// # Errors
/// [`MeshError::Unsupported`] for negative tags and curved cells, [`MeshError::Invalid`] for a field without a value for
/// each node or cell, [`MeshError::Io`] when the file cannot be written.
pub fn write(path: &Path, mesh: &Mesh) -> Result<(), MeshError> {
    write_as(path, mesh, false)
}

/// Writes as [`write()`] does, with numbers in binary, the least byte first.
///
/// # Errors
/// Those of [`write()`]; [`MeshError::Unsupported`] for fields of a mesh with 2³¹ elements or nodes, whose numbers have
/// 32 bits in sections of data.
pub fn write_binary(path: &Path, mesh: &Mesh) -> Result<(), MeshError> {
    write_as(path, mesh, true)
}

fn write_as(path: &Path, mesh: &Mesh, is_binary: bool) -> Result<(), MeshError> {
    refuse_curved(path, mesh)?;
    mesh.validate()?;
    let unsupported = |what, advice: &str| {
        Err(MeshError::Unsupported { path: path.into(), place: Place::Whole, what, advice: advice.into() })
    };
    if let Some(tag) = mesh.cell_tags.iter().chain(&mesh.facets.tags).find(|&&tag| tag < 0) {
        let what = format!("the negative tag {tag} in a file of Gmsh");
        return unsupported(what, "its physical groups have positive numbers; write .mesh or .vtu");
    }
    let has_fields = !(mesh.cell_fields.is_empty() && mesh.node_fields.is_empty());
    let n_most = mesh.n_nodes().max(mesh.n_cells() + mesh.facets.tags.len());
    if is_binary && has_fields && n_most > i32::MAX as usize {
        let what = format!("fields of {n_most} elements or nodes in a binary file of Gmsh");
        return unsupported(what, "write .vtu");
    }
    let cells = Block::new(mesh, mesh.kind, &mesh.cells, &mesh.cell_tags);
    let facet = mesh.kind.facet_kind();
    let facets = facet.map(|facet| Block::new(mesh, facet, &mesh.facets.nodes, &mesh.facets.tags));
    let blocks: Vec<_> = facets.into_iter().chain([cells]).collect();
    write_atomically(path, |out| {
        let mut out = Sink::new(out, is_binary);
        writeln!(out.out, "$MeshFormat\n4.1 {} 8", u8::from(is_binary))?;
        if is_binary {
            // The mark of byte order.
            out.ints([1])?;
            out.end_of_line()?;
        }
        writeln!(out.out, "$EndMeshFormat")?;
        write_names(out.out, mesh, &blocks)?;
        write_entities(&mut out, mesh, &blocks)?;
        write_nodes(&mut out, mesh, &blocks)?;
        write_elements(&mut out, &blocks)?;
        write_node_data(&mut out, mesh)?;
        write_element_data(&mut out, mesh, &blocks)
    })
}

/// Cells of one kind, by the number of their entity and group.
struct Block<'a> {
    kind: CellKind,
    nodes: &'a [u32],
    by_group: BTreeMap<i32, Vec<usize>>,
    /// The group of cells without a tag.
    untagged: i32,
}

impl<'a> Block<'a> {
    fn new(mesh: &Mesh, kind: CellKind, nodes: &'a [u32], tags: &[i32]) -> Self {
        let mut by_group: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
        for cell in 0..nodes.len() / kind.n_nodes() {
            by_group.entry(tags.get(cell).copied().unwrap_or(0)).or_default().push(cell);
        }
        // Numbers of entities and groups are positive.
        let is_named = |group| mesh.tag_names.contains_key(&(kind.dimension(), group));
        let is_free = |&group: &i32| !by_group.contains_key(&group) && !is_named(group);
        let untagged = (1..).find(is_free).unwrap_or(1);
        if let Some(cells) = by_group.remove(&0) {
            by_group.insert(untagged, cells);
        }
        Self { kind, nodes, by_group, untagged }
    }

    fn group_of(&self, tag: i32) -> i32 {
        if tag == 0 { self.untagged } else { tag }
    }

    /// All cells in the order of the file.
    fn cells(&self) -> impl Iterator<Item = usize> {
        self.by_group.values().flatten().copied()
    }
}

fn of_dimension<'b, 'a>(blocks: &'b [Block<'a>], dimension: usize) -> Option<&'b Block<'a>> {
    blocks.iter().find(|block| block.kind.dimension() == dimension)
}

/// Returns a name that is valid in quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", printable(name).replace('"', "_"))
}

fn write_names(out: &mut dyn Write, mesh: &Mesh, blocks: &[Block<'_>]) -> IoResult<()> {
    if mesh.tag_names.is_empty() {
        return Ok(());
    }
    writeln!(out, "$PhysicalNames\n{}", mesh.tag_names.len())?;
    for (&(dimension, tag), name) in &mesh.tag_names {
        let group = of_dimension(blocks, dimension).map_or(tag, |block| block.group_of(tag));
        writeln!(out, "{dimension} {group} {}", quoted(name))?;
    }
    writeln!(out, "$EndPhysicalNames")
}

fn write_entities(out: &mut Sink<'_>, mesh: &Mesh, blocks: &[Block<'_>]) -> IoResult<()> {
    let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for point in &mesh.points {
        for axis in 0..3 {
            low[axis] = low[axis].min(point[axis]);
            high[axis] = high[axis].max(point[axis]);
        }
    }
    let groups =
        |dimension| of_dimension(blocks, dimension).into_iter().flat_map(|block| block.by_group.keys());
    let count = |dimension| groups(dimension).count();
    // Readers take either all elements to be in groups or none.
    let is_grouped = mesh.cell_tags.iter().any(|&tag| tag > 0) || !mesh.facets.tags.is_empty();
    writeln!(out.out, "$Entities")?;
    out.sizes([0, count(1), count(2), count(3)])?;
    out.end_of_record()?;
    for &group in (1..=3).flat_map(groups) {
        out.ints([group])?;
        out.reals(low.iter().chain(&high).copied())?;
        out.sizes([usize::from(is_grouped)])?;
        out.ints(is_grouped.then_some(group))?;
        out.sizes([0])?;
        out.end_of_record()?;
    }
    out.end_of_section("Entities")
}

fn write_nodes(out: &mut Sink<'_>, mesh: &Mesh, blocks: &[Block<'_>]) -> IoResult<()> {
    let n = mesh.n_nodes();
    let cells = of_dimension(blocks, mesh.dimension());
    let entity = cells.and_then(|block| block.by_group.keys().next()).unwrap_or(&1);
    writeln!(out.out, "$Nodes")?;
    out.sizes([1, n, 1, n])?;
    out.end_of_record()?;
    out.ints([mesh.dimension() as i32, *entity, 0])?;
    out.sizes([n])?;
    out.end_of_record()?;
    for node in 1..=n {
        out.sizes([node])?;
        out.end_of_record()?;
    }
    for point in &mesh.points {
        out.reals(*point)?;
        out.end_of_record()?;
    }
    out.end_of_section("Nodes")
}

fn write_elements(out: &mut Sink<'_>, blocks: &[Block<'_>]) -> IoResult<()> {
    let n_blocks: usize = blocks.iter().map(|block| block.by_group.len()).sum();
    let n: usize = blocks.iter().map(|block| block.nodes.len() / block.kind.n_nodes()).sum();
    writeln!(out.out, "$Elements")?;
    out.sizes([n_blocks, n, 1, n])?;
    out.end_of_record()?;
    let mut number = 0;
    for block in blocks {
        let (dimension, n_nodes) = (block.kind.dimension(), block.kind.n_nodes());
        for (group, cells) in &block.by_group {
            out.ints([dimension as i32, *group, ElementType::number(block.kind)])?;
            out.sizes([cells.len()])?;
            out.end_of_record()?;
            for cell in cells {
                number += 1;
                let nodes = &block.nodes[cell * n_nodes..(cell + 1) * n_nodes];
                out.sizes([number].into_iter().chain(nodes.iter().map(|&node| node as usize + 1)))?;
                out.end_of_record()?;
            }
        }
    }
    out.end_of_section("Elements")
}

fn write_node_data(out: &mut Sink<'_>, mesh: &Mesh) -> IoResult<()> {
    if mesh.node_fields.is_empty() {
        return Ok(());
    }
    let nodes: Vec<Option<usize>> = (0..mesh.n_nodes()).map(Some).collect();
    mesh.node_fields.iter().try_for_each(|(name, field)| write_data(out, "NodeData", name, field, &nodes))
}

fn write_element_data(out: &mut Sink<'_>, mesh: &Mesh, blocks: &[Block<'_>]) -> IoResult<()> {
    if mesh.cell_fields.is_empty() {
        return Ok(());
    }
    let is_cell = |block: &Block<'_>| block.kind == mesh.kind;
    let elements = blocks.iter().flat_map(|block| block.cells().map(|cell| is_cell(block).then_some(cell)));
    let elements: Vec<Option<usize>> = elements.collect();
    mesh.cell_fields
        .iter()
        .try_for_each(|(name, field)| write_data(out, "ElementData", name, field, &elements))
}

/// Writes a field: for each node or element of the file its entry, NaN if it has none.
fn write_data(
    out: &mut Sink<'_>,
    section: &str,
    name: &str,
    field: &Field,
    entries: &[Option<usize>],
) -> IoResult<()> {
    let n = field.n_components;
    if matches!(n, 1 | 3 | 9) {
        return write_view(out, section, name, field, 0..n, entries);
    }
    (0..n).try_for_each(|component| {
        let name = format!("{name}[{component}]");
        write_view(out, section, &name, field, component..component + 1, entries)
    })
}

fn write_view(
    out: &mut Sink<'_>,
    section: &str,
    name: &str,
    field: &Field,
    components: std::ops::Range<usize>,
    entries: &[Option<usize>],
) -> IoResult<()> {
    // One name, one time (0), three numbers: step 0, components, entries.
    let (name, n) = (quoted(name), components.len());
    writeln!(out.out, "${section}\n1\n{name}\n1\n0.0\n3\n0\n{n}\n{}", entries.len())?;
    for (number, entry) in (1..).zip(entries) {
        out.ints([number])?;
        let value =
            |component| entry.map_or(f64::NAN, |entry| field.values[entry * field.n_components + component]);
        out.reals(components.clone().map(value))?;
        out.end_of_record()?;
    }
    out.end_of_section(section)
}
