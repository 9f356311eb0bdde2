//! Elements of any degree on quadrilaterals and hexahedra: operators, and multigrid set up from cells.

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
pub(crate) use operator::{CellDevice, SINGLE, assembled, constrained, of_metric, system, terms};
pub(crate) use quadrature::{rule, warnings};
pub(crate) use start::FullStart;

/// Returns whether cells of this kind have elements of any degree.
pub(crate) fn is_for(kind: CellKind) -> bool {
    matches!(kind, CellKind::Quadrilateral | CellKind::Hexahedron)
}
