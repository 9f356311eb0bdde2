//! The problems that benchmarks share, each defined once.

pub mod kuhn_box;
pub mod profiles;
pub mod tridiagonal;
