//! Sparse matrices, one folder a format.

pub mod csr;
pub mod ell_warp;

pub use csr::{Csr, Offsets};
pub use ell_warp::{EllWarp, EllWarpConfig};
