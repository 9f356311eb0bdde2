use femtile_device::parallel;

use super::half_facets::{FacetVisitor, HalfFacet, visit_facets};
use crate::interrupt::Interrupt;
use crate::{CellKind, CellSide, Mesh, MeshError};

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

    /// Appends a facet of a cell of the mesh.
    ///
    /// # Panics
    /// When there is no such cell or facet.
    pub fn push(&mut self, mesh: &Mesh, side: CellSide) {
        self.nodes.extend(mesh.side(side));
        self.cells.push(side.cell);
        self.local.push(side.local);
    }

    /// Fails unless each is a facet of a cell of the mesh, with its nodes; does not search for facets that are left out.
    ///
    /// # Cost
    /// One pass over the facets by all threads.
    /// # Errors
    /// [`MeshError::Invalid`] with the first facet that is none of its cell.
    pub fn belong_to(&self, mesh: &Mesh) -> Result<(), MeshError> {
        let invalid = |message| Err(MeshError::Invalid { field: "boundary", message });
        let n = mesh.kind.facet_kind().map_or(1, CellKind::n_nodes);
        if (self.nodes.len(), self.local.len()) != (n * self.len(), self.len()) {
            return invalid(format!(
                "{} nodes and {} numbers for {} facets",
                self.nodes.len(),
                self.local.len(),
                self.len()
            ));
        }
        let is_strange = |facet: usize| {
            let cell = self.cells[facet] as usize;
            let local = mesh.kind.facets().get(self.local[facet] as usize);
            local.filter(|_| cell < mesh.n_cells()).is_none_or(|local| {
                let nodes = mesh.cell(cell);
                !local.iter().map(|&i| nodes[i]).eq(self.facet(facet).iter().copied())
            })
        };
        match parallel::first(self.len(), parallel::CHEAP, is_strange) {
            Some(facet) => invalid(format!(
                "facet {facet} is no facet of cell {} of this mesh: take those that a check of it reports",
                self.cells[facet]
            )),
            None => Ok(()),
        }
    }

    /// The facets given as (cell, local facet), in ascending order.
    pub(crate) fn collect(mesh: &Mesh, sides: Vec<(u32, u8)>) -> Self {
        let key = |(cell, local): &(u32, u8)| u64::from(*cell) << 8 | u64::from(*local);
        let mut sides: Vec<u64> = sides.iter().map(key).collect();
        parallel::sort(&mut sides);
        let n = mesh.kind.facet_kind().map_or(1, CellKind::n_nodes);
        let mut nodes = vec![0; sides.len() * n];
        parallel::for_chunks_mut(&mut nodes, parallel::CHEAP * n, |begin, nodes| {
            for (to, &side) in nodes.chunks_exact_mut(n).zip(&sides[begin / n..]) {
                let of_cell = mesh.cell((side >> 8) as usize);
                let facet = mesh.kind.facets()[usize::from(side as u8)];
                to.iter_mut().zip(facet).for_each(|(to, &i)| *to = of_cell[i]);
            }
        });
        let (cells, local) = sides.into_iter().map(|side| ((side >> 8) as u32, side as u8)).unzip();
        Self { nodes, cells, local }
    }
}

/// Finds the boundary of a mesh: its facets that no other cell shares, by (cell, local facet).
///
/// The nodes of a facet are ordered outwards if its cell is positively oriented.
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
