//! Sparse matrices, one folder a format.

pub mod csr;
pub mod matrix_market;
mod triplets;

pub use csr::{Csr, Offsets};
pub use triplets::{Gathered, Triplets};
