//! Sparse matrices, one folder a format.
//!
//! [`Csr`] is what assembly gives and what the other formats are made from. Those are the ones that
//! `[wong2015]`, section 4, sets ELL-WARP against.

mod carries;
pub mod choice;
pub mod coo;
#[allow(unsafe_code)]
mod cpu;
pub mod csr;
#[allow(unsafe_code)]
pub(crate) mod cuda;
pub mod ell;
pub mod ell_warp;
mod format;
pub mod hyb;
pub mod jds;
mod kernels;
pub mod matrix_market;
pub mod merge;
mod places;
mod product_matrix;
mod reference;
mod rows;
mod triplets;

pub use coo::Coo;
pub use csr::{Csr, Offsets};
pub use ell::{Ell, EllConfig};
pub use ell_warp::{EllWarp, EllWarpConfig};
pub use format::{Format, SparseKernels, SparseMatrix};
pub use hyb::Hyb;
pub use jds::Jds;
pub use kernels::{HookKernels, TileKernels};
pub use merge::Merge;
pub use places::{Places, StoredMatrix};
pub use product_matrix::{MatrixFormat, ProductMatrix};
pub use triplets::{Gathered, Triplets};
