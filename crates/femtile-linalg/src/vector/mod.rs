//! Vectors: updates, products and reproducible sums.

#[allow(unsafe_code)]
pub(crate) mod cpu;
mod kernels;
mod reference;
pub mod sum;

pub use kernels::VectorKernels;
