//! The check of meshes that were made by formula, whose topology is known.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use femtile_device::parallel;

use super::boundary::BoundaryFacets;
use super::nodes::hash;
use super::report::{CheckConfig, CheckReport};
use super::surface::{Key, key, n_components};
use super::{CheckError, checked, geometry, go_on};
use crate::interrupt::Interrupt;
use crate::partition::{DistributedMesh, MeshPart};
use crate::{CellKind, IsInterrupted, Mesh, MeshError};

/// Cells that a thread compares with the tagged facets at a time.
const CELLS_PER_BLOCK: usize = 1 << 13;

/// Checks a mesh of [`crate::generate`], at a fraction of the cost of [`super::check`], with the same report.
///
/// The mesh may have been scaled, deformed or uniformly refined. Measures, qualities and orientations of all cells are
/// computed. Connectedness, distinct and used nodes, and a fully tagged boundary are assumed; unit tests of the
/// generators verify them. The full check runs if the tagged facets form no closed surface, a facet is tagged twice or
/// does not belong to exactly one cell, or a cell is negatively oriented.
///
/// # Cost
/// Three parallel passes over the cells; four bytes per node besides the mesh.
/// # Errors
/// As [`super::check`].
pub fn check_generated(mesh: &mut Mesh, config: &CheckConfig) -> Result<CheckReport, CheckError> {
    check_generated_interruptible(mesh, config, None)
}

/// Checks as [`check_generated`] does, and asks `is_interrupted` many times a second whether to end.
///
/// # Errors
/// As [`super::check_interruptible`].
pub fn check_generated_interruptible(
    mesh: &mut Mesh,
    config: &CheckConfig,
    is_interrupted: IsInterrupted<'_>,
) -> Result<CheckReport, CheckError> {
    let interrupt = Interrupt(is_interrupted);
    config.check()?;
    mesh.validate()?;
    let tagged = tagged_boundary(mesh, interrupt);
    go_on(interrupt)?;
    let Some(boundary) = tagged else {
        return checked(mesh, config, 0, interrupt);
    };
    let shapes = geometry::orient(mesh, interrupt).map_err(|error| error.of_file(mesh))?;
    if shapes.n_flipped > 0 {
        return checked(mesh, config, shapes.n_flipped, interrupt);
    }
    mesh.drop_names_of_no_cell();
    let mut report = CheckReport {
        n_components: 1,
        n_boundary_components: n_components(mesh, &boundary),
        warnings: mesh.notes.clone(),
        boundary: boundary.into(),
        ..CheckReport::new(mesh, &shapes)
    };
    report.write_warnings(config.sliver_quality, None, None, None);
    Ok(report)
}

/// Checks measures, qualities and orientations of the cells of a part of a generated or checked mesh. The
/// report of this rank names its worst cell by its global number. Counts and volume are those of its own
/// cells and those that it copies.
///
/// # Errors
/// As [`super::check`], and for a cell that is negatively oriented.
pub fn check_part(mesh: &mut DistributedMesh, config: &CheckConfig) -> Result<CheckReport, CheckError> {
    config.check()?;
    let MeshPart { mesh, boundary, cells, .. } = &mut mesh.part;
    mesh.validate()?;
    let shapes = geometry::orient(mesh, Interrupt(None))?;
    if shapes.n_flipped > 0 {
        let message =
            format!("{} of its cells are turned over, and those of a checked mesh are not", shapes.n_flipped);
        return Err(MeshError::Invalid { field: "cells", message }.into());
    }
    let boundary = boundary.clone().into();
    let mut report = CheckReport { n_components: 1, boundary, ..CheckReport::new(mesh, &shapes) };
    report.worst_cell = cells[report.worst_cell] as usize;
    report.write_warnings(config.sliver_quality, None, None, None);
    Ok(report)
}

/// Returns the tagged facets as facets of cells, if they form a closed surface (curve), each is tagged once and is a
/// facet of exactly one cell; after an interrupt none.
fn tagged_boundary(mesh: &Mesh, interrupt: Interrupt<'_>) -> Option<BoundaryFacets> {
    let n_tagged = mesh.facets.tags.len();
    let nodes_of = |facet| mesh.facet(facet).iter().copied();
    let mut wanted = parallel::map(n_tagged, parallel::CHEAP, |facet| key(nodes_of(facet)));
    parallel::sort(&mut wanted);
    if wanted.is_empty() || wanted.windows(2).any(|pair| pair[0] == pair[1]) || !is_closed(mesh) {
        return None;
    }
    let tagged = Tagged {
        is_on_facet: marks(mesh),
        is_found: wanted.iter().map(|_| AtomicBool::new(false)).collect(),
        is_shared: AtomicBool::new(false),
        wanted,
    };
    let sides = match mesh.kind.n_nodes() {
        2 => tagged.sides::<2>(mesh, interrupt),
        3 => tagged.sides::<3>(mesh, interrupt),
        4 => tagged.sides::<4>(mesh, interrupt),
        _ => tagged.sides::<8>(mesh, interrupt),
    };
    let is_boundary = sides.len() == n_tagged && !tagged.is_shared.into_inner();
    is_boundary.then(|| BoundaryFacets::collect(mesh, sides))
}

/// Returns whether each edge (in two dimensions: node) of the tagged facets belongs to an even number of them: then an
/// exclusive or of the hashes of all is zero.
fn is_closed(mesh: &Mesh) -> bool {
    let n = mesh.kind.facet_kind().map_or(1, CellKind::n_nodes);
    let of_facet = |nodes: &[u32]| {
        (0..n).fold(0, |all, i| {
            let (a, b) = (nodes[i], nodes[(i + 1) % n]);
            let ends = if n > 2 { [a.min(b), a.max(b)] } else { [a, a] };
            all ^ hash(&ends.map(i64::from))
        })
    };
    let of_facets = |_, nodes: &[u32]| nodes.chunks_exact(n).map(of_facet).fold(0, |a, b| a ^ b);
    let hashes = || parallel::map_chunks(&mesh.facets.nodes, parallel::CHEAP * n, of_facets);
    n == 1 || hashes().into_iter().fold(0, |a, b| a ^ b) == 0
}

/// Returns a bit for each node: whether a tagged facet has it.
fn marks(mesh: &Mesh) -> Vec<u64> {
    let mut marks = vec![0_u64; mesh.n_nodes().div_ceil(64)];
    mesh.facets.nodes.iter().for_each(|&node| marks[node as usize / 64] |= 1 << (node % 64));
    marks
}

/// The tagged facets of a mesh.
struct Tagged {
    /// A bit for each node.
    is_on_facet: Vec<u64>,
    /// Their nodes, each once.
    wanted: Vec<Key>,
    /// Whether a cell has it: `[wanted.len()]`.
    is_found: Vec<AtomicBool>,
    /// Whether two cells have one of them.
    is_shared: AtomicBool,
}

impl Tagged {
    /// Returns the facets of cells of `N` nodes that are tagged, by (cell, local facet).
    fn sides<const N: usize>(&self, mesh: &Mesh, interrupt: Interrupt<'_>) -> Vec<(u32, u8)> {
        let facets = mesh.kind.facets();
        let n = mesh.kind.facet_kind().map_or(1, CellKind::n_nodes) as u32;
        let masks: Vec<u32> =
            facets.iter().map(|facet| facet.iter().fold(0, |mask, &i| mask | 1 << i)).collect();
        let cells = mesh.cells.as_chunks::<N>().0;
        let of_block = |first: usize, cells: &[[u32; N]]| {
            let mut sides = Vec::new();
            if interrupt.is_set() {
                return sides;
            }
            for (cell, nodes) in (first..).zip(cells) {
                let marked = self.marked(nodes);
                if marked.count_ones() < n {
                    continue;
                }
                for (local, facet) in facets.iter().enumerate() {
                    let is_marked = marked & masks[local] == masks[local];
                    if is_marked && self.takes(key(facet.iter().map(|&i| nodes[i]))) {
                        sides.push((cell as u32, local as u8));
                    }
                }
            }
            sides
        };
        parallel::map_chunks(cells, CELLS_PER_BLOCK, of_block).concat()
    }

    /// Returns a bit for each node of a cell: whether a tagged facet has it.
    #[inline(always)]
    fn marked<const N: usize>(&self, nodes: &[u32; N]) -> u32 {
        (0..N).fold(0, |marked, i| {
            let bit = self.is_on_facet[nodes[i] as usize / 64] >> (nodes[i] % 64) & 1;
            marked | (bit as u32) << i
        })
    }

    /// Notes that a cell has a facet; returns whether it is tagged.
    fn takes(&self, facet: Key) -> bool {
        let Ok(place) = self.wanted.binary_search(&facet) else { return false };
        if self.is_found[place].swap(true, Relaxed) {
            self.is_shared.store(true, Relaxed);
        }
        true
    }
}
