//! Reference cells: quadrature, shape functions, affine maps.
//!
//! Points of a simplex are barycentric throughout: they are the values of the linear shape functions and need no map.
//! Weights of a rule sum to one and are multiplied by the measure of the cell.
#![forbid(unsafe_code)]

mod affine;
mod lagrange;
pub mod quadrature;
pub mod tensor;

pub use affine::Affine;
pub use lagrange::P1;
