//! Vectors: updates, products and reproducible sums.

#[allow(unsafe_code)]
pub(crate) mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod kernels;
mod reference;
pub mod scan;
pub mod sum;

pub use cpu::map_blocks;
pub use cuda::{conversion as cuda_conversion, programs as cuda_programs};
pub use kernels::{Convert, DeviceSum, VectorKernels};
