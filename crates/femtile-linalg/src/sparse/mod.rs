//! Sparse matrices, one folder a format.
//!
//! [`Csr`] is what assembly gives and what the other formats are made from. Those are the ones that
//! `[wong2015]`, section 4, sets ELL-WARP against.

mod carries;
pub mod coo;
#[allow(unsafe_code)]
mod cpu;
pub mod csr;
#[allow(unsafe_code)]
pub(crate) mod cuda;
pub mod ell;
pub mod hyb;
pub mod jds;
mod kernels;
pub mod merge;
mod reference;
mod rows;

pub use coo::Coo;
pub use csr::{Csr, Offsets};
pub use ell::{Ell, EllConfig};
pub use hyb::Hyb;
pub use jds::Jds;
pub use kernels::{HookKernels, TileKernels};
pub use merge::Merge;
