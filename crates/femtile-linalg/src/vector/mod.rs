//! Vectors: updates, products and reproducible sums.

pub(crate) mod cpu;
mod kernels;
mod reference;
pub mod sum;

pub use kernels::VectorKernels;
