//! Sparse matrices, one folder a format.
//!
//! [`Csr`] (compressed sparse rows) is the result of assembly; [`EllWarp`] is made from it. Products of solves use one of
//! the two. The formats that `[wong2015]`, section 4, compares ELL-WARP with are in the crate `femtile-research`.

pub mod choice;
pub mod csr;
pub mod ell_warp;
mod format;
pub mod matrix_market;
mod places;
mod product_matrix;
mod rows;
mod triplets;

use femtile_device::cuda::Specialisation;

use crate::hooks::CudaHook;
pub use csr::{Csr, Offsets};
pub use ell_warp::{EllWarp, EllWarpConfig};
pub use format::{Format, SparseKernels};
pub use places::{Places, StoredMatrix};
pub use product_matrix::{MatrixFormat, ProductMatrix};
pub use rows::need_narrow;
pub use triplets::{Gathered, Triplets};

/// Returns the GPU programs of both formats with a hook.
pub(crate) fn cuda_specialisations(hook: &CudaHook<'_>) -> Vec<Specialisation> {
    [csr::cuda::specialisations(hook), ell_warp::cuda::specialisations(hook)].concat()
}
