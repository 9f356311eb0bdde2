use std::path::Path;

use crate::io::format::refuse_curved;
use crate::io::write_atomically;
use crate::{CellKind, Mesh, MeshError, Place};

/// Writes `.node` and `.ele`, and with tagged facets `.face` (or `.edge` in two dimensions), numbered from 0.
///
/// Cell tags become the attribute of cells, facet tags the marker of facets; names and fields are not written.
///
/// # Errors
/// [`MeshError::Unsupported`] for surfaces in space and cells other than triangles and tetrahedra, [`MeshError::Io`].
pub fn write(path: &Path, mesh: &Mesh) -> Result<(), MeshError> {
    refuse_curved(path, mesh)?;
    let facet_extension = match mesh.kind {
        CellKind::Triangle if !mesh.is_surface => "edge",
        CellKind::Tetrahedron => "face",
        kind => {
            return Err(MeshError::Unsupported {
                path: path.into(),
                place: Place::Whole,
                what: format!(
                    "a mesh of {kind} cells{} in a .ele file",
                    if mesh.is_surface { " in space" } else { "" }
                ),
                advice: "the format holds triangles in the plane and tetrahedra; write .msh, .mesh or .vtu"
                    .into(),
            });
        }
    };
    let dimension = mesh.dimension();
    write_atomically(&path.with_extension("node"), |out| {
        writeln!(out, "{} {dimension} 0 0", mesh.n_nodes())?;
        for (node, point) in mesh.points.iter().enumerate() {
            write!(out, "{node}")?;
            point[..dimension].iter().try_for_each(|x| write!(out, " {x:?}"))?;
            writeln!(out)?;
        }
        Ok(())
    })?;
    write_records(
        &path.with_extension("ele"),
        mesh.n_cells(),
        Some(mesh.kind.n_nodes()),
        &mesh.cells,
        &mesh.cell_tags,
    )?;
    let facets = &mesh.facets;
    let facet_path = path.with_extension(facet_extension);
    if facets.tags.is_empty() {
        // A file left from another mesh would be read as facets of this one.
        return match std::fs::remove_file(&facet_path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(MeshError::Io { path: facet_path, action: "write", source })
            }
            _ => Ok(()),
        };
    }
    write_records(&facet_path, facets.tags.len(), None, &facets.nodes, &facets.tags)
}

fn write_records(
    path: &Path,
    n: usize,
    n_corners: Option<usize>,
    nodes: &[u32],
    tags: &[i32],
) -> Result<(), MeshError> {
    write_atomically(path, |out| {
        write!(out, "{n}")?;
        n_corners.map_or(Ok(()), |n_corners| write!(out, " {n_corners}"))?;
        writeln!(out, " {}", u8::from(!tags.is_empty()))?;
        for (record, corners) in nodes.chunks(nodes.len() / n.max(1)).enumerate() {
            write!(out, "{record}")?;
            corners.iter().try_for_each(|node| write!(out, " {node}"))?;
            tags.get(record).map_or(Ok(()), |tag| write!(out, " {tag}"))?;
            writeln!(out)?;
        }
        Ok(())
    })
}
