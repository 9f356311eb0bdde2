//! Elements on squares and cubes: products of polynomials in one coordinate.

mod lagrange;

pub use lagrange::{Lagrange, MAX_DEGREE, Table};
