//! Sparse matrices in compressed sparse rows and in slices of rows, written once for every device.
//!
//! [`Csr`] (compressed sparse rows) is the result of assembly; [`EllWarp`] is made from it. Products of solves use one of
//! the two. The formats that `[wong2015]`, section 4, compares ELL-WARP with are in the crate `femtile-research`.
#![deny(unsafe_code)]

pub mod choice;
pub mod csr;
mod device;
pub mod ell_warp;
mod entry_positions;
mod format;
pub mod matrix_market;
mod product_matrix;
mod rows;
mod triplets;
mod workspace;

use femtile_device::cuda::Specialisation;
use femtile_linalg::hooks::CudaHook;
use femtile_linalg::krylov::cg::product_hook;
use femtile_linalg::precondition::polynomial::product_hooks;

pub use csr::{Csr, Offsets};
pub use device::SparseDevice;
pub use ell_warp::{EllWarp, EllWarpConfig};
pub use entry_positions::{EntryPositions, StoredMatrix};
pub use format::{Format, SparseKernels};
pub use product_matrix::{LEAST_SLICED_ROWS, MatrixFormat, ProductMatrix};
pub use rows::need_narrow;
pub use triplets::{Gathered, Triplets};
pub use workspace::reserve_workspace;

/// Returns the GPU programs of this crate with the hooks of Krylov methods and smoothers, for checks that compile all of
/// them.
pub fn cuda_specialisations() -> Vec<Specialisation> {
    let [residual, step] = product_hooks();
    let hooks = [CudaHook::none(), product_hook(), residual, step];
    let of_hook = |hook| [csr::cuda::specialisations(hook), ell_warp::cuda::specialisations(hook)].concat();
    hooks.iter().flat_map(of_hook).collect()
}
