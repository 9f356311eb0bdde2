//! Finite-element spaces: elements, numbering of the degrees of freedom, geometry of the cells.
#![deny(unsafe_code)]
// Loops over corners and axes carry the indices of the formulas they compute.
#![allow(clippy::needless_range_loop)]

mod error;
pub mod geometry;
mod linear_space;
mod tensor_space;

pub use error::SpaceError;
pub use linear_space::LinearSpace;
pub use tensor_space::{Group, MAX_DEGREE, Orientation, TensorSpace};
