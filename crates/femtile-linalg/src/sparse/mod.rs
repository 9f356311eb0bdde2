//! Sparse matrices, one folder a format.

pub mod csr;

pub use csr::{Csr, Offsets};
