use crate::{CellKind, Mesh, MeshError};

/// Size of a mesh before anything is allocated, in floating point as it may be too large for memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    /// Kind of the cells.
    pub kind: CellKind,
    /// Number of nodes.
    pub n_nodes: f64,
    /// Number of cells.
    pub n_cells: f64,
    /// Degree of the cell shapes; 1 for straight cells.
    pub order: usize,
}

impl Counts {
    /// Returns the counts of straight cells of a generator.
    ///
    /// # Errors
    /// [`MeshError::Invalid`] of the field when nodes and cells cannot be numbered in 32 bits.
    pub(super) fn of(
        field: &'static str,
        kind: CellKind,
        n_nodes: f64,
        n_cells: f64,
    ) -> Result<Self, MeshError> {
        let limit = f64::from(u32::MAX);
        if n_nodes <= limit && n_cells <= limit {
            return Ok(Self { kind, n_nodes, n_cells, order: 1 });
        }
        let (count, what) = if n_nodes > limit { (n_nodes, "nodes") } else { (n_cells, "cells") };
        let message = format!(
            "this mesh would have {count:.0} {what} and at most {limit:.0} can be numbered: ask for a coarser one"
        );
        Err(MeshError::Invalid { field, message })
    }

    /// Returns the same counts with cells of a higher order.
    #[must_use]
    pub fn with_order(self, order: usize) -> Self {
        Self { order, ..self }
    }

    /// Returns the counts after `times` uniform refinements. The number of nodes is an upper bound, as if
    /// there were no boundary.
    #[must_use]
    pub fn refined(self, times: u32) -> Self {
        let factor = f64::from(1_u32 << self.kind.dimension()).powi(times.min(1000) as i32);
        Self { n_nodes: factor * self.n_nodes, n_cells: factor * self.n_cells, ..self }
    }
}

impl From<&Mesh> for Counts {
    fn from(mesh: &Mesh) -> Self {
        Self {
            kind: mesh.kind,
            n_nodes: mesh.n_nodes() as f64,
            n_cells: mesh.n_cells() as f64,
            order: mesh.curved.as_ref().map_or(1, |curved| curved.order),
        }
    }
}
