//! Checks of a mesh before it is used: faults are found, repaired or refused.
//!
//! Repairs that cannot change the geometry are made; other findings are warnings or refusals that name cells. Names
//! of tags that no cell has are dropped, so that `by_tag` refuses them. Facets are matched in chunks, so memory is
//! bounded for any mesh. `docs/mesh-check.md` explains each finding.

mod boundary;
mod components;
mod curved;
mod error;
mod facet_ranges;
mod finding;
mod generated;
mod geometry;
mod half_facets;
mod nodes;
mod overlap;
mod report;
mod sharing;
mod surface;
mod surface_cells;
mod voids;

use std::path::Path;
use std::sync::Arc;

use femtile_device::parallel;

pub(crate) use boundary::facets_until;
pub use boundary::{BoundaryFacets, boundary_facets};
pub use components::{Components, components};
pub use error::CheckError;
pub use finding::Finding;
pub use generated::{check_generated, check_generated_interruptible, check_part};
pub(crate) use nodes::hash;
pub use report::{CheckConfig, CheckReport};

use crate::extents::extents;
use crate::first_where::first_where;
use crate::interrupt::Interrupt;
use crate::{IsInterrupted, Mesh, MeshError};
use nodes::Duplicates;
pub(crate) use nodes::first_of_coincident;
use overlap::Identity;
use voids::{Side, Void};

/// Checks a mesh, makes the repairs that are safe, and reports its findings.
///
/// Repairs: negatively oriented cells are reoriented, unused nodes are dropped (fields and facets
/// follow), as are names of tags that no cell has, coincident nodes are merged on request. Warnings: slivers,
/// single gaps, cracks, several parts, data left out by a reader, accepted findings. Everything else that would
/// make a solution wrong is refused.
/// `docs/mesh-check.md` explains each finding. The report does not depend on the number of threads.
///
/// # Cost
/// A few passes over the cells by all threads; beyond the mesh 16 bytes per node, a quarter of a byte a cell
/// and 80 MiB.
/// # Errors
/// [`CheckError`] names the cells that make the mesh unusable; earlier repairs are kept.
pub fn check(mesh: &mut Mesh, config: &CheckConfig) -> Result<CheckReport, CheckError> {
    check_interruptible(mesh, config, None)
}

impl Mesh {
    /// Reads a mesh file, checks it and makes the repairs that are safe; [`crate::io::read`] and [`check`] do
    /// so in two steps, with settings and a report.
    ///
    /// # Errors
    /// Those of [`crate::io::read`] and [`check`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self, CheckError> {
        let mut mesh = crate::io::read(path.as_ref())?;
        check(&mut mesh, &CheckConfig::default())?;
        Ok(mesh)
    }
}

/// Checks as [`check`] does, and asks `is_interrupted` many times a second whether to end.
///
/// # Errors
/// Those of [`check`]; [`CheckError::Interrupted`].
pub fn check_interruptible(
    mesh: &mut Mesh,
    config: &CheckConfig,
    is_interrupted: IsInterrupted<'_>,
) -> Result<CheckReport, CheckError> {
    config.check()?;
    mesh.validate()?;
    checked(mesh, config, 0, Interrupt(is_interrupted))
}

/// Checks a mesh whose arrays are valid; `n_turned` cells have been reoriented already.
fn checked(
    mesh: &mut Mesh,
    config: &CheckConfig,
    n_turned: usize,
    interrupt: Interrupt<'_>,
) -> Result<CheckReport, CheckError> {
    if mesh.n_cells() > u32::MAX as usize {
        let message = format!("{} cells; at most {} can be numbered", mesh.n_cells(), u32::MAX);
        return Err(MeshError::Invalid { field: "cells", message }.into());
    }
    refuse_repeated_nodes(mesh, false).map_err(|error| error.of_file(mesh))?;
    mesh.drop_names_of_no_cell();
    let mut orphans = nodes::drop_orphans(mesh);
    let (n_orphans, n_stray) = (orphans.n_nodes, orphans.n_facets);
    go_on(interrupt)?;
    let tolerance = config.tolerance * diagonal(&mesh.points);
    let mut duplicates = nodes::find_duplicates(&mesh.points, tolerance);
    let mut n_merged = 0;
    if config.merge_duplicates && !duplicates.is_empty() {
        nodes::merge(mesh, &duplicates);
        nodes::merge_curved(mesh, config.tolerance * diagonal(&mesh.points));
        refuse_repeated_nodes(mesh, true)
            .map_err(|error| error.renumbered(|i| orphans.number_before(i)).of_file(mesh))?;
        orphans = nodes::drop_orphans(mesh).after(&orphans);
        n_merged = std::mem::take(&mut duplicates).len();
    } else if !duplicates.is_empty() {
        duplicates = nodes::without_neighbours(mesh, duplicates, tolerance);
    }
    go_on(interrupt)?;
    let mut shapes = geometry::orient(mesh, interrupt).map_err(|error| error.of_file(mesh))?;
    shapes.n_flipped += n_turned;
    let (shared, parts) = parallel::join(
        || sharing::boundary(mesh, interrupt),
        || components::n_parts(mesh.n_nodes(), mesh.kind.n_nodes(), &mesh.cells, interrupt),
    );
    go_on(interrupt)?;
    let (boundary, findings) = shared;
    let number_before = |node| orphans.number_before(node);
    let findings = findings.into_iter().map(|error| error.renumbered(number_before).of_file(mesh)).collect();
    let mut accepted = settle(findings, config)?;
    let (gaps, findings) = overlaps(mesh, &boundary, &duplicates, interrupt);
    go_on(interrupt)?;
    let findings = findings.into_iter().map(|error| error.of_file(mesh)).collect();
    accepted.extend(settle(findings, config)?);
    let mut report = CheckReport {
        n_orphans,
        n_merged,
        n_duplicate_nodes: duplicates.len(),
        n_crack_facets: surface::n_crack_facets(&boundary, &duplicates),
        n_components: parts,
        n_boundary_components: surface::n_components(mesh, &boundary),
        n_gaps: gaps.len(),
        n_pinched: surface::n_pinched(mesh, &boundary),
        n_tagged_inside: n_stray + surface::n_tagged_inside(mesh, &boundary),
        warnings: mesh.notes.iter().cloned().chain(accepted).collect(),
        boundary: Arc::new(boundary),
        ..CheckReport::new(mesh, &shapes)
    };
    let first_duplicate =
        duplicates.first().map(|&(node, other)| (number_before(node), number_before(other)));
    let worst = mesh.cell_of_file(report.worst_cell);
    report.write_warnings(config.sliver_quality, worst, first_duplicate, gaps.first());
    Ok(report)
}

fn go_on(interrupt: Interrupt<'_>) -> Result<(), CheckError> {
    if interrupt.is_set() { Err(CheckError::Interrupted) } else { Ok(()) }
}

/// Adds warnings for accepted findings; returns the first other one as the error.
fn settle(findings: Vec<CheckError>, config: &CheckConfig) -> Result<Vec<String>, CheckError> {
    let mut accepted = Vec::new();
    for error in findings {
        match error.finding() {
            Some(finding) if config.accept.contains(&finding) => {
                accepted.push(format!("accepted ({}): {error}", finding.name()));
            }
            _ => return Err(error),
        }
    }
    Ok(accepted)
}

fn refuse_repeated_nodes(mesh: &Mesh, after_merge: bool) -> Result<(), CheckError> {
    let first = match mesh.kind.n_nodes() {
        2 => first_with_repeated_node::<2>(&mesh.cells),
        3 => first_with_repeated_node::<3>(&mesh.cells),
        4 => first_with_repeated_node::<4>(&mesh.cells),
        _ => first_with_repeated_node::<8>(&mesh.cells),
    };
    match first {
        Some(cell) => {
            let nodes = mesh.cell(cell);
            let repeated = (1..nodes.len()).find(|&i| nodes[..i].contains(&nodes[i]));
            let node = repeated.map_or(nodes[0], |i| nodes[i]);
            Err(CheckError::RepeatedNode { cell, node, after_merge })
        }
        None => Ok(()),
    }
}

/// The first cell of `N` nodes that uses a node twice.
fn first_with_repeated_node<const N: usize>(cells: &[u32]) -> Option<usize> {
    first_where(cells.as_chunks::<N>().0, |nodes| {
        let pairs = (1..N).flat_map(|i| (0..i).map(move |j| (i, j)));
        pairs.fold(false, |any, (i, j)| any | (nodes[i] == nodes[j]))
    })
}

/// Returns single gaps, which cause warnings, and faults of boundary facets that meet without being identical. Surfaces in space may
/// meet in any way.
fn overlaps(
    mesh: &Mesh,
    boundary: &BoundaryFacets,
    duplicates: &Duplicates,
    interrupt: Interrupt<'_>,
) -> (Vec<Void>, Vec<CheckError>) {
    if mesh.is_surface {
        return (Vec::new(), Vec::new());
    }
    let representative = |node| nodes::representative(duplicates, node);
    let voids = voids::voids(mesh, boundary, &representative);
    let (lone, others): (Vec<Void>, Vec<Void>) = voids.into_iter().partition(|void| void.is_lone);
    let numbered = lone.iter().enumerate();
    let mut of_gaps: Vec<_> = numbered.flat_map(|(i, gap)| gap.facets.map(|facet| (facet, i))).collect();
    of_gaps.sort_unstable();
    let gap_of = |facet| {
        let found = of_gaps.binary_search_by_key(&facet, |&(facet, _)| facet);
        found.ok().map(|place| of_gaps[place].1)
    };
    let identity = Identity {
        representative: &representative,
        has_duplicates: !duplicates.is_empty(),
        share_a_gap: &|a, b| gap_of(a).is_some_and(|gap| gap_of(b) == Some(gap)),
    };
    let overlapping = overlap::overlapping_facets(mesh, boundary, &identity, interrupt);
    let (overlaps, gaps): (Vec<Void>, Vec<Void>) =
        others.into_iter().partition(|void| void.side == Side::Overlap);
    let of_void = |void: &Void| {
        let [first, rest @ ..] = void.facets;
        let other = rest.into_iter().find(|&facet| boundary.cells[facet] != boundary.cells[first]);
        (first, other.unwrap_or(first))
    };
    let overlapping =
        overlapping.or_else(|| overlaps.first().map(of_void)).map(|(a, b)| CheckError::OverlappingFacets {
            first: boundary.cells[a] as usize,
            second: boundary.cells[b] as usize,
            at: geometry::centroid(&mesh.points, boundary.facet(a)),
        });
    let gaps = gaps.first().map(|gap| CheckError::Gaps {
        n: gaps.len(),
        cell: boundary.cells[gap.facets[0]] as usize,
        at: gap.at,
        longest_edge: gap.longest_edge,
    });
    (lone, overlapping.into_iter().chain(gaps).collect())
}

/// Length of the diagonal of the box around all nodes.
fn diagonal(points: &[[f64; 3]]) -> f64 {
    let [lower, upper] = extents(points.len(), |node| points[node]);
    geometry::square_of(geometry::sub(upper, lower)).sqrt()
}
