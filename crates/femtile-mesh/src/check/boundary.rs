use rayon::prelude::*;

use super::half_facets::{FacetVisitor, HalfFacet, visit_facets};
use crate::Mesh;
use crate::interrupt::Interrupt;

/// The facets that belong to one cell only: the boundary of the mesh.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BoundaryFacets {
    /// Nodes of each facet, ordered so that its normal points outwards: `[len × nodes of a facet]`.
    pub nodes: Vec<u32>,
    /// The cell that each facet belongs to.
    pub cells: Vec<u32>,
    /// Number of each facet in its cell, as [`crate::CellKind::facets`] counts.
    pub local: Vec<u8>,
}

impl BoundaryFacets {
    /// Number of facets.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Returns whether the mesh has no boundary.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Nodes of one facet, outward.
    ///
    /// # Panics
    /// When there is no facet of that number.
    pub fn facet(&self, facet: usize) -> &[u32] {
        let n = self.nodes.len() / self.cells.len().max(1);
        &self.nodes[facet * n..(facet + 1) * n]
    }

    /// The facets given as (cell, local facet), in ascending order.
    pub(super) fn collect(mesh: &Mesh, mut sides: Vec<(u32, u8)>) -> Self {
        sides.par_sort_unstable();
        let n = mesh.kind.facet_kind().map_or(1, crate::CellKind::n_nodes);
        let mut facets = Self {
            nodes: Vec::with_capacity(sides.len() * n),
            cells: Vec::with_capacity(sides.len()),
            local: Vec::with_capacity(sides.len()),
        };
        for (cell, local) in sides {
            let nodes = mesh.cell(cell as usize);
            facets.nodes.extend(mesh.kind.facets()[local as usize].iter().map(|&i| nodes[i]));
            facets.cells.push(cell);
            facets.local.push(local);
        }
        facets
    }
}

/// Finds the boundary of a mesh: its facets that no other cell shares, by (cell, local facet).
///
/// The nodes of a facet are ordered outwards where its cell is positively oriented.
///
/// # Cost
/// A few million half-facets at a time whatever the size of the mesh; about 1 µs for 25 cells and core.
pub fn boundary_facets(mesh: &Mesh) -> BoundaryFacets {
    facets_until(mesh, Interrupt::NEVER)
}

/// As [`boundary_facets`]; only some of them after an interrupt.
pub(crate) fn facets_until(mesh: &Mesh, interrupt: Interrupt<'_>) -> BoundaryFacets {
    #[derive(Default)]
    struct Unshared(Vec<(u32, u8)>);
    impl FacetVisitor for Unshared {
        fn visit<const K: usize>(&mut self, _: &Mesh, group: &[HalfFacet<K>]) {
            if let [facet] = group {
                self.0.push((facet.cell, facet.local()));
            }
        }
    }
    let found: Vec<Unshared> = visit_facets(mesh, interrupt);
    BoundaryFacets::collect(mesh, found.into_iter().flat_map(|part| part.0).collect())
}
