//! Mapped cells with coefficients: geometry and matrix-free products.

mod cells;
mod diagonal;
mod geometry;
mod product;
mod shapes;

pub(crate) use cells::{MappedCells, for_matrices, kind_of};
pub(crate) use diagonal::diagonal_of;
pub(crate) use geometry::{CellGeometry, CellMap};
pub(crate) use product::{CellProduct, ProductWorkspace};
pub(crate) use shapes::ShapeKind;
