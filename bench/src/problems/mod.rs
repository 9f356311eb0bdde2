//! The problems that benchmarks share, each defined once.

pub mod bake_off;
pub mod blobs;
mod by_cell;
pub mod checkerboard;
pub mod cube;
mod elliptic;
pub mod irregular_box;
pub mod kuhn_box;
pub mod regular;
pub mod slab;
pub mod solves;
pub mod tridiagonal;
pub mod ventricle;
pub mod whole;

pub use by_cell::by_cell;
pub use elliptic::{Elliptic, EllipticSystem};
