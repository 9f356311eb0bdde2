//! What a mesh must satisfy before anything is solved on it: faults found, repaired or refused.

mod boundary;
mod clash;
mod components;
mod curved;
mod error;
mod geometry;
mod half_facets;
mod nodes;
mod overlap;
mod report;
mod sharing;
mod surface;

use rayon::prelude::*;

pub use boundary::{BoundaryFacets, boundary_facets};
pub use components::{Components, components};
pub use error::CheckError;
pub use report::{CheckConfig, CheckReport};

use crate::{Mesh, MeshError};
use nodes::Duplicates;

/// Checks a mesh, repairs what can be repaired safely, and reports what it found.
///
/// Repaired: cells of negative orientation are turned over, nodes without a cell are dropped (fields
/// and facets follow), coinciding nodes are merged on request. Only warned of: slivers, cracks, several
/// parts. Everything else that would make a solution wrong is refused. `docs/mesh-check.md` explains
/// each finding. The report does not depend on the number of threads.
///
/// # Cost
/// A few passes over the cells; beyond the mesh 16 bytes a node and 64 MiB.
/// # Errors
/// [`CheckError`] names the cells that make the mesh unusable; repairs made before stay made.
pub fn check(mesh: &mut Mesh, config: &CheckConfig) -> Result<CheckReport, CheckError> {
    for (field, value) in [("tolerance", config.tolerance), ("sliver_quality", config.sliver_quality)] {
        if !(value.is_finite() && value >= 0.0) {
            return Err(CheckError::Setting { field, value });
        }
    }
    mesh.validate()?;
    if mesh.n_cells() > u32::MAX as usize {
        let message = format!("{} cells; at most {} can be numbered", mesh.n_cells(), u32::MAX);
        return Err(MeshError::Invalid { field: "cells", message }.into());
    }
    refuse_repeated_nodes(mesh, false)?;
    let (n_orphans, n_stray) = nodes::drop_orphans(mesh);
    let mut duplicates = nodes::find_duplicates(&mesh.points, config.tolerance * diagonal(&mesh.points));
    let mut n_merged = 0;
    if config.merge_duplicates && !duplicates.is_empty() {
        nodes::merge(mesh, &duplicates);
        nodes::merge_curved(mesh, config.tolerance * diagonal(&mesh.points));
        refuse_repeated_nodes(mesh, true)?;
        nodes::drop_orphans(mesh);
        n_merged = std::mem::take(&mut duplicates).len();
    }
    let shapes = geometry::orient(mesh)?;
    let (boundary, parts) = rayon::join(|| sharing::boundary_of_sound(mesh), || components(mesh).count);
    let boundary = boundary?;
    refuse_overlaps(mesh, &boundary, &duplicates)?;
    let mut report = CheckReport {
        n_orphans,
        n_merged,
        n_duplicate_nodes: duplicates.len(),
        n_crack_facets: surface::n_crack_facets(&boundary, &duplicates),
        n_components: parts,
        n_boundary_facets: boundary.len(),
        n_boundary_components: surface::n_components(mesh, &boundary),
        n_pinched: surface::n_pinched(mesh, &boundary),
        n_tagged_inside: n_stray + surface::n_tagged_inside(mesh, &boundary),
        ..CheckReport::new(mesh, &shapes)
    };
    report.write_warnings(config.sliver_quality, duplicates.first().copied());
    Ok(report)
}

fn refuse_repeated_nodes(mesh: &Mesh, after_merge: bool) -> Result<(), CheckError> {
    let repeated = |nodes: &[u32]| (1..nodes.len()).find(|&i| nodes[..i].contains(&nodes[i]));
    let cells = mesh.cells.par_chunks_exact(mesh.kind.n_nodes());
    match cells.position_first(|nodes| repeated(nodes).is_some()) {
        Some(cell) => {
            let nodes = mesh.cell(cell);
            let node = repeated(nodes).map_or(nodes[0], |i| nodes[i]);
            Err(CheckError::RepeatedNode { cell, node, after_merge })
        }
        None => Ok(()),
    }
}

fn refuse_overlaps(
    mesh: &Mesh,
    boundary: &BoundaryFacets,
    duplicates: &Duplicates,
) -> Result<(), CheckError> {
    let representative = |node| nodes::representative(duplicates, node);
    let pair = overlap::overlapping_facets(mesh, boundary, representative);
    let Some((a, b)) = pair.or_else(|| clash::clashing_facets(mesh, boundary, representative)) else {
        return Ok(());
    };
    Err(CheckError::OverlappingFacets {
        first: boundary.cells[a] as usize,
        second: boundary.cells[b] as usize,
        at: geometry::centroid(&mesh.points, boundary.facet(a)),
    })
}

/// Length of the diagonal of the box around all nodes.
fn diagonal(points: &[[f64; 3]]) -> f64 {
    let (mut lower, mut upper) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
    for point in points {
        for d in 0..3 {
            (lower[d], upper[d]) = (lower[d].min(point[d]), upper[d].max(point[d]));
        }
    }
    geometry::square_of(geometry::sub(upper, lower)).sqrt()
}
