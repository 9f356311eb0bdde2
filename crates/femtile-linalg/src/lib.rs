//! Vectors, sparse matrices and Krylov methods, written once for every device.
//!
//! Each folder is a mathematical object: `mod.rs` states it without a device, `kernels.rs` the few
//! acts it needs, `reference.rs` and `cpu.rs` carry them out.
#![deny(unsafe_code)]

pub mod comm;
mod error;
pub mod hooks;
pub mod krylov;
mod operator;
pub mod precondition;
pub mod sparse;
pub mod vector;

pub use error::LinalgError;
pub use operator::{LinearOperator, Preconditioner};
