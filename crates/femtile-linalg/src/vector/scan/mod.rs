//! Running sums of counts on a GPU, which turn lengths of rows into offsets.

#[allow(unsafe_code)]
mod cuda;

pub(crate) use cuda::specialisations;
pub use cuda::{program as cuda_program, starts};
