use std::path::Path;

use super::read::{end, node};
use crate::io::name::printable;
use crate::io::scanner::{Scanner, show};
use crate::{CellKind, Mesh, MeshError};

/// Reads a surface, whose facets get a tag of their own with its name.
pub(super) fn facets(path: &Path, bytes: &[u8], name: &str, mesh: &mut Mesh) -> Result<(), MeshError> {
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
    for _ in 0..n {
        let found = scanner.expect("the kind of a facet")?;
        if found != word.as_bytes() {
            let message = format!("the facets of {} cells are `{word}`, not `{}`", mesh.kind, show(found));
            return Err(scanner.error(message));
        }
        for _ in 0..kind.n_nodes() {
            let node = node(&mut scanner, mesh.points.len())?;
            mesh.facets.nodes.push(node);
        }
        // A region may follow.
        if scanner.word_of_line().is_some() {
            scanner.end_of_line("a facet")?;
        }
        mesh.facets.tags.push(tag);
    }
    end(&mut scanner, n, "facets")?;
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
