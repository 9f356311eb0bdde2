use std::collections::BTreeMap;
use std::io::{Result as IoResult, Write};
use std::path::Path;

use super::element_type::ElementType;
use crate::io::format::refuse_curved;
use crate::io::name::printable;
use crate::io::write_atomically;
use crate::{CellKind, Field, Mesh, MeshError, Place};

/// Writes a Gmsh file of version 4.1 in ASCII: each tag becomes an entity and a physical group.
///
/// Cells are written by tag, so their order changes when tags are mixed. Where some cells or facets are tagged, those
/// without a tag form the group of the first number that is free. Fields become `$ElementData` and `$NodeData`; those
/// of other than 1, 3 or 9 components, which Gmsh does not show, become one section a component. Facets have NaN as
/// their values, because all elements must have one for `meshio`.
///
/// # Errors
/// [`MeshError::Unsupported`] for negative tags and curved cells, [`MeshError::Invalid`] for a field without a value for
/// each node or cell, [`MeshError::Io`] when the file cannot be written.
pub fn write(path: &Path, mesh: &Mesh) -> Result<(), MeshError> {
    refuse_curved(path, mesh)?;
    mesh.validate()?;
    if let Some(tag) = mesh.cell_tags.iter().chain(&mesh.facets.tags).find(|&&tag| tag < 0) {
        return Err(MeshError::Unsupported {
            path: path.into(),
            place: Place::Whole,
            what: format!("the negative tag {tag} in a file of Gmsh"),
            advice: "its physical groups have positive numbers; write .mesh or .vtu".into(),
        });
    }
    let cells = Block::new(mesh, mesh.kind, &mesh.cells, &mesh.cell_tags);
    let facet = mesh.kind.facet_kind();
    let facets = facet.map(|facet| Block::new(mesh, facet, &mesh.facets.nodes, &mesh.facets.tags));
    let blocks: Vec<_> = facets.into_iter().chain([cells]).collect();
    write_atomically(path, |out| {
        writeln!(out, "$MeshFormat\n4.1 0 8\n$EndMeshFormat")?;
        write_names(out, mesh, &blocks)?;
        write_entities(out, mesh, &blocks)?;
        write_nodes(out, mesh, &blocks)?;
        write_elements(out, &blocks)?;
        write_node_data(out, mesh)?;
        write_element_data(out, mesh, &blocks)
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

fn write_entities(out: &mut dyn Write, mesh: &Mesh, blocks: &[Block<'_>]) -> IoResult<()> {
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
    writeln!(out, "$Entities\n0 {} {} {}", count(1), count(2), count(3))?;
    for group in (1..=3).flat_map(groups) {
        write!(out, "{group}")?;
        low.iter().chain(&high).try_for_each(|x| write!(out, " {x:?}"))?;
        if is_grouped { writeln!(out, " 1 {group} 0")? } else { writeln!(out, " 0 0")? }
    }
    writeln!(out, "$EndEntities")
}

fn write_nodes(out: &mut dyn Write, mesh: &Mesh, blocks: &[Block<'_>]) -> IoResult<()> {
    let n = mesh.n_nodes();
    let cells = of_dimension(blocks, mesh.dimension());
    let entity = cells.and_then(|block| block.by_group.keys().next()).unwrap_or(&1);
    writeln!(out, "$Nodes\n1 {n} 1 {n}\n{} {entity} 0 {n}", mesh.dimension())?;
    (1..=n).try_for_each(|node| writeln!(out, "{node}"))?;
    mesh.points.iter().try_for_each(|[x, y, z]| writeln!(out, "{x:?} {y:?} {z:?}"))?;
    writeln!(out, "$EndNodes")
}

fn write_elements(out: &mut dyn Write, blocks: &[Block<'_>]) -> IoResult<()> {
    let n_blocks: usize = blocks.iter().map(|block| block.by_group.len()).sum();
    let n: usize = blocks.iter().map(|block| block.nodes.len() / block.kind.n_nodes()).sum();
    writeln!(out, "$Elements\n{n_blocks} {n} 1 {n}")?;
    let mut number = 0;
    for block in blocks {
        let (dimension, n_nodes) = (block.kind.dimension(), block.kind.n_nodes());
        for (group, cells) in &block.by_group {
            writeln!(out, "{dimension} {group} {} {}", ElementType::number(block.kind), cells.len())?;
            for cell in cells {
                number += 1;
                write!(out, "{number}")?;
                let nodes = &block.nodes[cell * n_nodes..(cell + 1) * n_nodes];
                nodes.iter().try_for_each(|node| write!(out, " {}", node + 1))?;
                writeln!(out)?;
            }
        }
    }
    writeln!(out, "$EndElements")
}

fn write_node_data(out: &mut dyn Write, mesh: &Mesh) -> IoResult<()> {
    if mesh.node_fields.is_empty() {
        return Ok(());
    }
    let nodes: Vec<Option<usize>> = (0..mesh.n_nodes()).map(Some).collect();
    mesh.node_fields.iter().try_for_each(|(name, field)| write_data(out, "NodeData", name, field, &nodes))
}

fn write_element_data(out: &mut dyn Write, mesh: &Mesh, blocks: &[Block<'_>]) -> IoResult<()> {
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

/// Writes a field: for each node or element of the file its entry, NaN where it has none.
fn write_data(
    out: &mut dyn Write,
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
    out: &mut dyn Write,
    section: &str,
    name: &str,
    field: &Field,
    components: std::ops::Range<usize>,
    entries: &[Option<usize>],
) -> IoResult<()> {
    // One name, one time (0), three numbers: step 0, components, entries.
    let (name, n) = (quoted(name), components.len());
    writeln!(out, "${section}\n1\n{name}\n1\n0.0\n3\n0\n{n}\n{}", entries.len())?;
    for (number, entry) in entries.iter().enumerate() {
        write!(out, "{}", number + 1)?;
        for component in components.clone() {
            match entry {
                Some(entry) => write!(out, " {:?}", field.values[entry * field.n_components + component])?,
                None => write!(out, " nan")?,
            }
        }
        writeln!(out)?;
    }
    writeln!(out, "$End{section}")
}
