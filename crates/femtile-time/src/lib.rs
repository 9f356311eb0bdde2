//! Time stepping on any device.
//!
//! `adi/`: alternating direction implicit methods on boxes; each step solves a few batches of tridiagonal systems.
//!
//! `implicit/`: schemes, step control and checkpoints for any semidiscrete equation; they know vectors only.
#![deny(unsafe_code)]

pub mod adi;
mod error;
pub mod implicit;

pub use adi::cuda::specialisations as cuda_specialisations;
pub use error::TimeError;
