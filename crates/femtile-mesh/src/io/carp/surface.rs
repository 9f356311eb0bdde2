use std::path::Path;

use super::read::{end, node};
use crate::io::collect::note_of_left_out;
use crate::io::name::printable;
use crate::io::scanner::{Scanner, show};
use crate::simplices::{CornerNumbers, Polygon};
use crate::{CellKind, Mesh, MeshError};

/// Reads a surface, whose facets get a tag of their own with its name.
///
/// Quadrilaterals of divided cells are cut by `numbers`, as their cells; those that are no polygons are left out with a note.
pub(super) fn facets(
    path: &Path,
    bytes: &[u8],
    name: &str,
    numbers: &CornerNumbers,
    mesh: &mut Mesh,
) -> Result<(), MeshError> {
    let mut scanner = Scanner::new(path, bytes).with_comments(b'#');
    let n = scanner.count("facets", 7)?;
    let Some(kind) = mesh.kind.facet_kind() else { return Ok(()) };
    let word = match kind {
        CellKind::Segment => "Ln",
        CellKind::Quadrilateral => "Qd",
        _ => "Tr",
    };
    let Some((tag, is_named)) = tag(mesh, name) else {
        return Err(scanner.error("the regions of facets leave no number for this surface"));
    };
    let mut n_left_out = 0;
    for _ in 0..n {
        let found = scanner.expect("the kind of a facet")?;
        let is_cut = found == b"Qd" && kind == CellKind::Triangle && mesh.division.is_some();
        if found != word.as_bytes() && !is_cut {
            let message = format!("the facets of {} cells are `{word}`, not `{}`", mesh.kind, show(found));
            return Err(scanner.error(message));
        }
        let mut nodes = [0; 4];
        let nodes = &mut nodes[..if is_cut { 4 } else { kind.n_nodes() }];
        for to in &mut *nodes {
            *to = node(&mut scanner, mesh.points.len())?;
        }
        // A region may follow.
        if scanner.word_of_line().is_some() {
            scanner.end_of_line("a facet")?;
        }
        let polygon = Polygon::of(nodes.iter().copied());
        if is_cut && !polygon.encloses_area() {
            n_left_out += 1;
            continue;
        }
        let parts: Vec<u32> = match is_cut {
            true => polygon.triangles(numbers).flatten().collect(),
            false => nodes.to_vec(),
        };
        mesh.facets.tags.resize(mesh.facets.tags.len() + parts.len() / kind.n_nodes(), tag);
        mesh.facets.nodes.extend(parts);
    }
    end(&mut scanner, n, "facets")?;
    mesh.notes.extend(note_of_left_out(n_left_out, &format!(" of the surface `{}`", printable(name))));
    if is_named {
        mesh.tag_names.insert((kind.dimension(), tag), printable(name).into_owned());
    }
    Ok(())
}

/// Returns the tag of a surface, and whether it has a name: a name that is a free number is the tag itself.
fn tag(mesh: &Mesh, name: &str) -> Option<(i32, bool)> {
    let used = || mesh.facets.tags.iter().copied().chain(mesh.tag_names.keys().map(|&(_, tag)| tag));
    match name.parse::<i32>() {
        Ok(number) if number > 0 && used().all(|tag| tag != number) => Some((number, false)),
        _ => Some((used().max().unwrap_or(0).max(0).checked_add(1)?, true)),
    }
}
