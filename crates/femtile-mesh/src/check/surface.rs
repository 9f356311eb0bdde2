//! Properties of the boundary as a whole.

use femtile_device::parallel;

use super::boundary::BoundaryFacets;
use super::components::n_parts;
use super::nodes::{Duplicates, representative};
use crate::interrupt::Interrupt;
use crate::{CellKind, Mesh};

/// Ascending nodes of a facet, padded with the largest number; the first in the highest bits.
pub(super) type Key = u128;

/// Returns the key of a facet.
pub(super) fn key(nodes: impl Iterator<Item = u32>) -> Key {
    let mut key = [u32::MAX; 4];
    key.iter_mut().zip(nodes).for_each(|(to, node)| *to = node);
    key.sort_unstable();
    key.into_iter().fold(0, |key, node| key << 32 | u128::from(node))
}

fn sorted_keys(boundary: &BoundaryFacets, rename: impl Fn(u32) -> u32 + Sync) -> Vec<Key> {
    let nodes_of = |i| boundary.facet(i).iter().map(|&node| rename(node));
    let mut keys = parallel::map(boundary.len(), parallel::CHEAP, |i| key(nodes_of(i)));
    parallel::sort(&mut keys);
    keys
}

/// Boundary facets that coincide with another one with different nodes.
pub(super) fn n_crack_facets(boundary: &BoundaryFacets, duplicates: &Duplicates) -> usize {
    if duplicates.is_empty() {
        return 0;
    }
    let keys = sorted_keys(boundary, |node| representative(duplicates, node));
    keys.chunk_by(|a, b| a == b).map(<[Key]>::len).filter(|&n| n > 1).sum()
}

/// Connected parts of the boundary; facets are connected when they share a node.
pub(super) fn n_components(mesh: &Mesh, boundary: &BoundaryFacets) -> usize {
    let n = mesh.kind.facet_kind().map_or(1, CellKind::n_nodes);
    n_parts(mesh.n_nodes(), n, &boundary.nodes, Interrupt::NEVER)
}

/// Edges of a surface, nodes of a curve, in which more than two boundary facets meet; none of a surface in space, whose sheets may meet
/// along edges.
pub(super) fn n_pinched(mesh: &Mesh, boundary: &BoundaryFacets) -> usize {
    let mut ridges: Vec<u64> = match mesh.kind.dimension() {
        _ if mesh.is_surface => Vec::new(),
        3 => {
            let n = mesh.kind.facet_kind().map_or(1, CellKind::n_nodes);
            let edge = |i: usize| {
                let facet = boundary.facet(i / n);
                let (a, b) = (facet[i % n], facet[(i + 1) % n]);
                u64::from(a.min(b)) << 32 | u64::from(a.max(b))
            };
            parallel::map(boundary.nodes.len(), parallel::CHEAP, edge)
        }
        2 => boundary.nodes.iter().map(|&node| u64::from(node)).collect(),
        _ => Vec::new(),
    };
    parallel::sort(&mut ridges);
    ridges.chunk_by(|a, b| a == b).filter(|group| group.len() > 2).count()
}

/// Tagged facets that are not boundary facets.
pub(super) fn n_tagged_inside(mesh: &Mesh, boundary: &BoundaryFacets) -> usize {
    if mesh.facets.tags.is_empty() {
        return 0;
    }
    let keys = sorted_keys(boundary, |node| node);
    let is_inside = |i: usize| keys.binary_search(&key(mesh.facet(i).iter().copied())).is_err();
    parallel::sum(mesh.facets.tags.len(), 1 << 8, |i| usize::from(is_inside(i)))
}
