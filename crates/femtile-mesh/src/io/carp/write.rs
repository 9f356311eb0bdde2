use std::collections::BTreeMap;
use std::io::{Result as IoResult, Write};
use std::path::Path;

use super::files::{find, surfaces, with};
use super::solids::OPPOSITE;
use crate::io::format::refuse_curved;
use crate::io::write_atomically;
use crate::{CellKind, Field, Mesh, MeshError, Place};

/// Writes `.pts` and `.elem`, with the cell field `fibre`, and `sheet` beside it, `.lon`, and each part of the boundary as
/// `name.PART.surf`.
///
/// Coordinates are written as they are: openCARP takes them as micrometres. Names of regions and other fields are not
/// written.
///
/// # Errors
/// [`MeshError::Unsupported`] for curved cells and beside surfaces of another mesh, [`MeshError::Io`] when a file cannot be written.
pub fn write(path: &Path, mesh: &Mesh) -> Result<(), MeshError> {
    refuse_curved(path, mesh)?;
    let base = find(path).unwrap_or_else(|| path.into());
    let parts = parts(mesh);
    refuse_others(&base, &parts)?;
    write_atomically(&with(&base, "pts"), |out| {
        writeln!(out, "{}", mesh.n_nodes())?;
        mesh.points.iter().try_for_each(|[x, y, z]| writeln!(out, "{x:?} {y:?} {z:?}"))
    })?;
    write_atomically(&with(&base, "elem"), |out| {
        writeln!(out, "{}", mesh.n_cells())?;
        for cell in 0..mesh.n_cells() {
            write_nodes(out, mesh.kind, mesh.cell(cell))?;
            writeln!(out, " {}", mesh.cell_tags.get(cell).unwrap_or(&0))?;
        }
        Ok(())
    })?;
    write_fibres(&with(&base, "lon"), mesh)?;
    let write = |(name, facets): (&String, &Vec<usize>)| {
        write_surface(&with(&base, &format!("{name}.surf")), mesh, facets)
    };
    parts.iter().try_for_each(write)
}

fn write_nodes(out: &mut dyn Write, kind: CellKind, nodes: &[u32]) -> IoResult<()> {
    let name = match kind {
        CellKind::Segment => "Ln",
        CellKind::Triangle => "Tr",
        CellKind::Quadrilateral => "Qd",
        CellKind::Tetrahedron => "Tt",
        CellKind::Hexahedron => "Hx",
    };
    write!(out, "{name}")?;
    match kind {
        CellKind::Hexahedron => OPPOSITE.iter().try_for_each(|&corner| write!(out, " {}", nodes[corner])),
        _ => nodes.iter().try_for_each(|node| write!(out, " {node}")),
    }
}

/// Writes the directions; a file left from another mesh, which would be read with this one, is removed.
fn write_fibres(path: &Path, mesh: &Mesh) -> Result<(), MeshError> {
    let direction = |name: &str| mesh.cell_fields.get(name).filter(|field| field.n_components == 3);
    let fields: Vec<&Field> = match (direction("fibre"), direction("sheet")) {
        (Some(fibre), Some(sheet)) => vec![fibre, sheet],
        (Some(fibre), None) => vec![fibre],
        (None, _) => {
            return match std::fs::remove_file(path) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    Err(MeshError::Io { path: path.into(), action: "write", source })
                }
                _ => Ok(()),
            };
        }
    };
    write_atomically(path, |out| {
        writeln!(out, "{}", fields.len())?;
        for cell in 0..mesh.n_cells() {
            let components = fields.iter().flat_map(|field| &field.values[3 * cell..3 * cell + 3]);
            let text: Vec<String> = components.map(|x| format!("{x:?}")).collect();
            writeln!(out, "{}", text.join(" "))?;
        }
        Ok(())
    })
}

/// Returns the facets of each part of the boundary, by its name.
fn parts(mesh: &Mesh) -> BTreeMap<String, Vec<usize>> {
    let dimension = mesh.dimension() - 1;
    let mut parts: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (facet, &tag) in mesh.facets.tags.iter().enumerate() {
        // A name that may be that of a file; else the number.
        let is_plain = |name: &&String| {
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'))
        };
        let name = mesh.tag_names.get(&(dimension, tag)).filter(is_plain);
        parts.entry(name.map_or_else(|| tag.to_string(), Clone::clone)).or_default().push(facet);
    }
    parts
}

/// Refuses to write beside a surface of another mesh, which would be read as a part of this one.
fn refuse_others(base: &Path, parts: &BTreeMap<String, Vec<usize>>) -> Result<(), MeshError> {
    let Some(other) = surfaces(base)?.into_iter().find(|name| !parts.contains_key(name)) else {
        return Ok(());
    };
    let path = with(base, &format!("{other}.surf"));
    Err(MeshError::Unsupported {
        path: base.into(),
        place: Place::Whole,
        what: format!("writing beside {}, which would be read as a part of this mesh,", path.display()),
        advice: "remove that file, or take another name".into(),
    })
}

fn write_surface(path: &Path, mesh: &Mesh, facets: &[usize]) -> Result<(), MeshError> {
    let Some(kind) = mesh.kind.facet_kind() else { return Ok(()) };
    write_atomically(path, |out| {
        writeln!(out, "{}", facets.len())?;
        for &facet in facets {
            write_nodes(out, kind, mesh.facet(facet))?;
            writeln!(out)?;
        }
        Ok(())
    })
}
