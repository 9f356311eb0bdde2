//! Properties of the boundary as a whole.

use rayon::prelude::*;

use super::boundary::BoundaryFacets;
use super::components::n_parts;
use super::nodes::{Duplicates, representative};
use crate::interrupt::Interrupt;
use crate::{CellKind, Mesh};

/// Ascending nodes of a facet, padded with the largest number.
pub(super) type Key = [u32; 4];

/// Returns the key of a facet.
pub(super) fn key(nodes: impl Iterator<Item = u32>) -> Key {
    let mut key = [u32::MAX; 4];
    key.iter_mut().zip(nodes).for_each(|(to, node)| *to = node);
    key.sort_unstable();
    key
}

fn sorted_keys(boundary: &BoundaryFacets, rename: impl Fn(u32) -> u32 + Sync) -> Vec<Key> {
    let nodes_of = |i| boundary.facet(i).iter().map(|&node| rename(node));
    let mut keys: Vec<Key> = (0..boundary.len()).into_par_iter().map(|i| key(nodes_of(i))).collect();
    keys.par_sort_unstable();
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

/// Edges of a surface, nodes of a curve, in which more than two boundary facets meet.
pub(super) fn n_pinched(mesh: &Mesh, boundary: &BoundaryFacets) -> usize {
    let mut ridges: Vec<[u32; 2]> = match mesh.kind.dimension() {
        3 => {
            let edges = |facet| {
                let facet: &[u32] = boundary.facet(facet);
                let next = facet.iter().cycle().skip(1);
                facet.iter().zip(next).map(|(&a, &b)| [a.min(b), a.max(b)])
            };
            (0..boundary.len()).into_par_iter().flat_map_iter(edges).collect()
        }
        2 => boundary.nodes.iter().map(|&node| [node; 2]).collect(),
        _ => Vec::new(),
    };
    ridges.par_sort_unstable();
    ridges.par_chunk_by(|a, b| a == b).filter(|group| group.len() > 2).count()
}

/// Tagged facets that are not boundary facets.
pub(super) fn n_tagged_inside(mesh: &Mesh, boundary: &BoundaryFacets) -> usize {
    if mesh.facets.tags.is_empty() {
        return 0;
    }
    let keys = sorted_keys(boundary, |node| node);
    let is_inside = |&i: &usize| keys.binary_search(&key(mesh.facet(i).iter().copied())).is_err();
    (0..mesh.facets.tags.len()).into_par_iter().filter(is_inside).count()
}
