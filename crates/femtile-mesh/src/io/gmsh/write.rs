use std::collections::{BTreeMap, BTreeSet};
use std::io::{Result as IoResult, Write};
use std::path::Path;

use super::element_type::ElementType;
use crate::io::format::refuse_curved;
use crate::io::write_atomically;
use crate::{CellKind, Mesh, MeshError, Place};

/// Writes a file of Gmsh, version 4.1 as text: each tag becomes an entity and a physical group.
///
/// Cells are written by tag, so their order changes when tags are mixed. Fields are left out.
///
/// # Errors
/// [`MeshError::Unsupported`] for negative tags and curved cells, [`MeshError::Io`] when the file cannot be written.
pub fn write(path: &Path, mesh: &Mesh) -> Result<(), MeshError> {
    refuse_curved(path, mesh)?;
    if let Some(tag) = mesh.cell_tags.iter().chain(&mesh.facets.tags).find(|&&tag| tag < 0) {
        return Err(MeshError::Unsupported {
            path: path.into(),
            place: Place::Whole,
            what: format!("the negative tag {tag} in a file of Gmsh"),
            advice: "its physical groups have positive numbers; write .mesh or .vtu".into(),
        });
    }
    let cells = Block::new(mesh.kind, &mesh.cells, &mesh.cell_tags);
    let facet = mesh.kind.facet_kind();
    let facets = facet.map(|facet| Block::new(facet, &mesh.facets.nodes, &mesh.facets.tags));
    let blocks: Vec<_> = facets.into_iter().chain([cells]).collect();
    write_atomically(path, |out| {
        writeln!(out, "$MeshFormat\n4.1 0 8\n$EndMeshFormat")?;
        write_names(out, mesh)?;
        write_entities(out, mesh, &blocks)?;
        write_nodes(out, mesh)?;
        write_elements(out, &blocks)
    })
}

/// Cells of one kind, by tag.
struct Block<'a> {
    kind: CellKind,
    nodes: &'a [u32],
    by_tag: BTreeMap<i32, Vec<usize>>,
}

impl<'a> Block<'a> {
    fn new(kind: CellKind, nodes: &'a [u32], tags: &[i32]) -> Self {
        let mut by_tag: BTreeMap<i32, Vec<usize>> = BTreeMap::new();
        for cell in 0..nodes.len() / kind.n_nodes() {
            by_tag.entry(tags.get(cell).copied().unwrap_or(0)).or_default().push(cell);
        }
        Self { kind, nodes, by_tag }
    }
}

fn write_names(out: &mut dyn Write, mesh: &Mesh) -> IoResult<()> {
    if mesh.tag_names.is_empty() {
        return Ok(());
    }
    writeln!(out, "$PhysicalNames\n{}", mesh.tag_names.len())?;
    for ((dimension, tag), name) in &mesh.tag_names {
        // A name stands in quotes on one line and cannot hold either.
        writeln!(out, "{dimension} {tag} \"{}\"", name.replace(['"', '\n', '\r'], "_"))?;
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
    let of = |dimension| blocks.iter().find(|block| block.kind.dimension() == dimension);
    let tags = |dimension| of(dimension).map(|block| block.by_tag.keys().collect::<BTreeSet<_>>());
    let count = |dimension| tags(dimension).map_or(0, |tags| tags.len());
    writeln!(out, "$Entities\n0 {} {} {}", count(1), count(2), count(3))?;
    for tag in (1..=3).filter_map(tags).flatten() {
        write!(out, "{tag}")?;
        low.iter().chain(&high).try_for_each(|x| write!(out, " {x:?}"))?;
        // Tag 0 stands for no group.
        if *tag == 0 { writeln!(out, " 0 0")? } else { writeln!(out, " 1 {tag} 0")? }
    }
    writeln!(out, "$EndEntities")
}

fn write_nodes(out: &mut dyn Write, mesh: &Mesh) -> IoResult<()> {
    let n = mesh.n_nodes();
    let tag = mesh.cell_tags.iter().min().unwrap_or(&0);
    writeln!(out, "$Nodes\n1 {n} 1 {n}\n{} {tag} 0 {n}", mesh.dimension())?;
    (1..=n).try_for_each(|node| writeln!(out, "{node}"))?;
    mesh.points.iter().try_for_each(|[x, y, z]| writeln!(out, "{x:?} {y:?} {z:?}"))?;
    writeln!(out, "$EndNodes")
}

fn write_elements(out: &mut dyn Write, blocks: &[Block<'_>]) -> IoResult<()> {
    let n_blocks: usize = blocks.iter().map(|block| block.by_tag.len()).sum();
    let n: usize = blocks.iter().map(|block| block.nodes.len() / block.kind.n_nodes()).sum();
    writeln!(out, "$Elements\n{n_blocks} {n} 1 {n}")?;
    let mut number = 0;
    for block in blocks {
        let (dimension, n_nodes) = (block.kind.dimension(), block.kind.n_nodes());
        for (tag, cells) in &block.by_tag {
            writeln!(out, "{dimension} {tag} {} {}", ElementType::number(block.kind), cells.len())?;
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
