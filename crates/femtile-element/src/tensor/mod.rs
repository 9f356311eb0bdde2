//! Elements on squares and cubes: tensor products of 1-D polynomials.

mod lagrange;

pub use lagrange::{Lagrange, MAX_DEGREE, Table};
