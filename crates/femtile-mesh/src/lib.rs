//! Meshes: points, cells, tags and fields; readers and writers, generators, refinement, checks, partitions, patches of nodes.
//!
//! `Mesh::read`, the first call of most programs, reads and checks. The mesh, its readers and its check are
//! therefore one crate.
#![forbid(unsafe_code)]

mod alike;
mod cell_kind;
mod cell_shape;
mod cells;
mod error;
mod extents;
mod facet_sides;
mod first_where;
mod interrupt;
mod mesh;
mod numbering;
mod patches;
mod plane;
mod simplices;
mod split;
mod tensor;

pub mod check;
pub mod generate;
pub mod io;
pub mod partition;
pub mod refine;

pub use cell_kind::CellKind;
pub use cell_shape::CellShape;
pub use cells::MiddleMap;
pub use error::{MeshError, Place};
pub use facet_sides::CellSide;
pub use interrupt::IsInterrupted;
pub use mesh::{Curved, Facets, Field, Mesh};
pub use patches::Patches;
pub use simplices::Division;
