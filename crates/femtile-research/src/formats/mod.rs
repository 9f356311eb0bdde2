//! Storage formats of sparse matrices that ELL-WARP is compared with: HYB, and an even division of entries in place of
//! MGPU, `[wong2015]`, section 4.
//!
//! Each format is made from `Csr`. Solves use `Csr` and ELL-WARP alone.

mod carries;
mod compared;
mod coo;
#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
mod cuda;
mod ell;
mod hyb;
mod kernels;
mod merge;

pub use compared::{ComparedFormat, ComparedMatrix};
pub use coo::Coo;
pub use cuda::cuda_specialisations;
pub use ell::Ell;
pub use hyb::Hyb;
pub use kernels::FormatKernels;
pub use merge::Merge;
