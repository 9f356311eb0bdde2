//! Sparse matrices, one folder a format.

pub mod csr;
pub mod ell_warp;
pub mod matrix_market;
mod triplets;

pub use csr::{Csr, Offsets};
pub use ell_warp::{EllWarp, EllWarpConfig};
pub use triplets::{Gathered, Triplets};
