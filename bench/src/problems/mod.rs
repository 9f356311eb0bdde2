//! The problems that benchmarks share, each defined once.

pub mod irregular_box;
pub mod kuhn_box;
pub mod profiles;
pub mod tridiagonal;
