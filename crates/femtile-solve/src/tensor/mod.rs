//! Elements of any degree on quadrilaterals and hexahedra: operators, and multigrid set up from cells.
//!
//! `operator` makes operators on the device. `lattice/` finds the rows of cells in the mesh, by coordinates, by the
//! numbers of nodes or from neighbour to neighbour; `geometric` makes the coarser boxes, `degrees` the levels of
//! p-multigrid.

mod ahead;
pub(crate) mod degrees;
mod extension;
pub(crate) mod geometric;
mod lattice;
mod lines;
mod operator;
mod quadrature;
mod start;

use femtile_mesh::CellKind;

pub(crate) use ahead::Ahead;
pub use geometric::cells_fill_rows;
pub(crate) use geometric::{BoxCells, Boxes};
pub(crate) use lines::has_flat_cells;
pub use operator::OperatorDevice;
pub(crate) use operator::{CellDevice, OnCells, assembled, of_metric};
pub(crate) use quadrature::{rule, warnings};
pub(crate) use start::FullStart;

/// Returns whether cells of this kind have elements of any degree.
pub(crate) fn is_for(kind: CellKind) -> bool {
    matches!(kind, CellKind::Quadrilateral | CellKind::Hexahedron)
}
