//! Vectors, operators, Krylov methods, eigenvalues and simple preconditioners, written once for every device.
//!
//! Each folder is a mathematical object: `mod.rs` states it without a device, `kernels.rs` the few
//! acts it needs, `reference.rs` and `cpu.rs` carry them out.
//!
//! `cuda.rs` is the host side of a GPU, with its `.cu` files beside it. A device touches no other file of the
//! folder. There is no trait of all kernels: a device is any type that implements the kernel traits of the methods
//! that run on it. `reference.rs` imports nothing from `cpu.rs` or `cuda.rs`, and tests compare each device with
//! it.
#![deny(unsafe_code)]

mod closure;
pub mod comm;
pub mod eigen;
mod error;
pub mod hooks;
pub mod krylov;
pub mod newton;
mod operator;
pub mod precondition;
pub mod vector;

use femtile_device::cuda::Specialisation;

pub use closure::ClosureOperator;
pub use error::{LinalgError, need, need_product};
pub use operator::{GhostedOperator, LinearOperator, Preconditioner, Transfer};

/// The GPU programs that this crate ships, for checks that compile all of them.
pub fn cuda_specialisations() -> Vec<Specialisation> {
    vector::cuda::specialisations()
        .into_iter()
        .chain(eigen::cuda::programs())
        .chain(precondition::polynomial::cuda::specialisations())
        .chain(krylov::cg::cuda::specialisations())
        .chain(krylov::merged_cg::cuda::specialisations())
        .chain(krylov::pipelined_cg::cuda::specialisations())
        .chain(krylov::s_step_cg::cuda::specialisations())
        .collect()
}
