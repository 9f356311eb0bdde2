//! Femtile: finite-element solves that keep their data in small tiles of fast memory.
//!
//! This crate is what users import; it re-exports the chapters of the library and joins what they must not know of each
//! other.

mod from_mesh;

pub use femtile_amg as amg;
pub use femtile_device as device;
pub use femtile_element as element;
pub use femtile_expression as expression;
pub use femtile_fem as fem;
pub use femtile_linalg as linalg;
pub use femtile_mesh as mesh;
pub use femtile_multigrid as multigrid;
pub use femtile_solve as solve;
pub use femtile_tensor as tensor;
pub use femtile_time as time;
pub use femtile_tridiagonal as tridiagonal;
pub use from_mesh::amg_from_mesh;
