//! Sparse matrices, one folder a format.

pub mod csr;
mod triplets;

pub use csr::{Csr, Offsets};
pub use triplets::{Gathered, Triplets};
