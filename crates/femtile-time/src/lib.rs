//! Time stepping, written once for every device.
//!
//! `adi/` holds alternating directions on boxes: each step is a few batches of tridiagonal systems.
#![deny(unsafe_code)]

pub mod adi;
mod error;
pub mod implicit;

pub use adi::cuda::specialisations as cuda_specialisations;
pub use error::TimeError;
