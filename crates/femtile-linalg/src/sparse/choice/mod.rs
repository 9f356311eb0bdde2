//! Which format suits a matrix.

mod candidates;

pub use candidates::{cpu_candidates, gpu_candidates};
