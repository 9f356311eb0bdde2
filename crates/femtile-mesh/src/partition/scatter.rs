//! The parts of a mesh that one rank has whole, for all ranks.

use std::collections::BTreeSet;

use rayon::prelude::*;

use super::divided::WholeMesh;
use super::part::fields_of;
use super::{Part, Partition};
use crate::check::BoundaryFacets;
use crate::generate::Counts;
use crate::{CellKind, Facets, Mesh};

/// A number that no node has.
const ABSENT: u32 = u32::MAX;

/// A whole mesh with its division among ranks.
#[derive(Debug)]
pub struct Scatter<'m> {
    mesh: &'m Mesh,
    boundary: &'m BoundaryFacets,
    owners: Vec<u32>,
    is_shared: Vec<bool>,
    /// Tags of cells without a name.
    nameless: BTreeSet<i32>,
}

impl<'m> Scatter<'m> {
    /// Takes a mesh with the facets on its boundary.
    ///
    /// # Panics
    /// Where the partition is one of a mesh with another number of cells.
    pub fn new(mesh: &'m Mesh, boundary: &'m BoundaryFacets, partition: &Partition) -> Self {
        let owners = partition.owners(mesh);
        let is_shared = partition.shared(mesh, &owners);
        let mut nameless = mesh.cell_tags.clone();
        nameless.par_sort_unstable();
        nameless.dedup();
        nameless.retain(|tag| !mesh.tag_names.contains_key(&(mesh.dimension(), *tag)));
        Self { mesh, boundary, owners, is_shared, nameless: nameless.into_iter().collect() }
    }

    /// Returns whether each of `n_ranks` owns a node.
    pub fn serves_all(&self, n_ranks: usize) -> bool {
        let mut has_node = vec![false; n_ranks];
        let ranks = self.owners.iter().filter_map(|&owner| usize::try_from(owner).ok());
        ranks.filter(|&rank| rank < n_ranks).for_each(|rank| has_node[rank] = true);
        has_node.into_iter().all(|has_node| has_node)
    }

    /// Takes the part of a rank with its tagged facets and fields, and counts the nodes that it owns and cells of other ranks have;
    /// none where it owns no node. Tags of cells without a name get their number as one, by which ranks know those of others.
    pub fn part(&self, rank: usize) -> Option<(Part, usize)> {
        let mut part = Part::new(self.mesh, self.boundary, &self.owners, rank)?;
        part.mesh.facets = tagged_facets(self.mesh, &part.nodes);
        part.mesh.cell_fields = fields_of(&self.mesh.cell_fields, &part.cells);
        part.mesh.node_fields = fields_of(&self.mesh.node_fields, &part.nodes);
        let named = self.nameless.iter().map(|&tag| ((self.mesh.dimension(), tag), tag.to_string()));
        part.mesh.tag_names.extend(named);
        let n_shared =
            part.nodes[..part.n_owned].iter().filter(|&&node| self.is_shared[node as usize]).count();
        Some((part, n_shared))
    }

    /// Returns the whole mesh, of which `n_edges` are the edges; those of simplices do not matter.
    pub fn whole(&self, n_edges: u64) -> WholeMesh {
        let mesh = self.mesh;
        let coordinate = |axis: usize| mesh.points.par_iter().map(move |point| point[axis]);
        let lowest = |axis| coordinate(axis).reduce(|| f64::INFINITY, f64::min);
        let highest = |axis| coordinate(axis).reduce(|| f64::NEG_INFINITY, f64::max);
        let [n_nodes, n_cells] = [mesh.n_nodes(), mesh.n_cells()].map(|n| n as u64);
        // Each side of a cell is on the boundary or shared by two.
        let n_sides = (n_cells * mesh.kind.facets().len() as u64 + self.boundary.len() as u64) / 2;
        let entities = match mesh.dimension() {
            1 => [n_nodes, n_cells, 0, 0],
            2 => [n_nodes, n_sides, n_cells, 0],
            _ => [n_nodes, n_edges, n_sides, n_cells],
        };
        let extents = [[0, 1, 2].map(lowest), [0, 1, 2].map(highest)];
        WholeMesh { counts: Counts::from(mesh), entities, extents }
    }
}

/// Returns the edges of the hexahedra of a part that a rank owns, an edge being owned by the higher of the owners of its ends: each
/// edge of the whole mesh is counted by one rank. None of other cells.
pub fn n_own_edges(part: &Part, rank: usize) -> u64 {
    if part.mesh.kind != CellKind::Hexahedron {
        return 0;
    }
    let owner = |node: u32| match (node as usize).checked_sub(part.n_owned) {
        Some(ghost) => part.owners[ghost],
        None => rank as u32,
    };
    let is_own = |&(a, b): &(u32, u32)| owner(a).max(owner(b)) == rank as u32;
    let of_facet = |facet: &'static [usize]| (0..4).map(move |i| (facet[i], facet[(i + 1) % 4]));
    let mut ends: Vec<(usize, usize)> =
        CellKind::Hexahedron.facets().iter().flat_map(|facet| of_facet(facet)).collect();
    ends.iter_mut().for_each(|(a, b)| (*a, *b) = ((*a).min(*b), (*a).max(*b)));
    ends.sort_unstable();
    ends.dedup();
    let of_cell = |cell: usize| {
        let nodes = part.mesh.cell(cell);
        let edge = |&(a, b): &(usize, usize)| (nodes[a].min(nodes[b]), nodes[a].max(nodes[b]));
        ends.iter().map(edge).filter(is_own).collect::<Vec<_>>()
    };
    let mut edges: Vec<(u32, u32)> =
        (0..part.mesh.n_cells()).into_par_iter().flat_map_iter(of_cell).collect();
    edges.par_sort_unstable();
    edges.dedup();
    edges.len() as u64
}

/// The tagged facets of a mesh whose nodes a part has, with their numbers there.
fn tagged_facets(mesh: &Mesh, nodes: &[u32]) -> Facets {
    let mut facets = Facets::default();
    if mesh.facets.tags.is_empty() {
        return facets;
    }
    let mut local = vec![ABSENT; mesh.n_nodes()];
    nodes.iter().zip(0..).for_each(|(&node, number)| local[node as usize] = number);
    for (facet, &tag) in mesh.facets.tags.iter().enumerate() {
        let nodes = mesh.facet(facet).iter().map(|&node| local[node as usize]);
        if nodes.clone().all(|node| node != ABSENT) {
            facets.nodes.extend(nodes);
            facets.tags.push(tag);
        }
    }
    facets
}
