use std::io::Write;
use std::path::Path;

use crate::io::format::refuse_curved;
use crate::io::write_atomically;
use crate::{CellKind, Mesh, MeshError};

/// Writes a MEDIT file with cell and facet tags as references, without names and fields.
///
/// # Errors
/// [`MeshError::Unsupported`] for curved cells, [`MeshError::Io`] when the file cannot be written.
pub fn write(path: &Path, mesh: &Mesh) -> Result<(), MeshError> {
    refuse_curved(path, mesh)?;
    let dimension = mesh.space_dimension();
    write_atomically(path, |out| {
        writeln!(out, "MeshVersionFormatted 2\nDimension {dimension}\nVertices\n{}", mesh.n_nodes())?;
        for point in &mesh.points {
            point[..dimension].iter().try_for_each(|x| write!(out, "{x:?} "))?;
            writeln!(out, "0")?;
        }
        write_block(out, mesh.kind, &mesh.cells, &mesh.cell_tags)?;
        if let Some(facet) = mesh.kind.facet_kind() {
            write_block(out, facet, &mesh.facets.nodes, &mesh.facets.tags)?;
        }
        writeln!(out, "End")
    })
}

fn write_block(out: &mut dyn Write, kind: CellKind, nodes: &[u32], tags: &[i32]) -> std::io::Result<()> {
    if nodes.is_empty() {
        return Ok(());
    }
    let keyword = match kind {
        CellKind::Segment => "Edges",
        CellKind::Triangle => "Triangles",
        CellKind::Quadrilateral => "Quadrilaterals",
        CellKind::Tetrahedron => "Tetrahedra",
        CellKind::Hexahedron => "Hexahedra",
    };
    writeln!(out, "{keyword}\n{}", nodes.len() / kind.n_nodes())?;
    for (cell, nodes) in nodes.chunks_exact(kind.n_nodes()).enumerate() {
        nodes.iter().try_for_each(|node| write!(out, "{} ", node + 1))?;
        writeln!(out, "{}", tags.get(cell).unwrap_or(&0))?;
    }
    Ok(())
}
