//! The operator on an NVIDIA GPU: columns of nodes in registers, lines in shared memory, no atomics.

mod batches;
mod config;
mod data;
#[allow(unsafe_code)]
mod degree_transfer;
#[allow(unsafe_code)]
mod facets;
mod groups;
mod met;
mod metric;
#[allow(unsafe_code)]
mod operator;
mod program;
mod tables;

pub use config::{CellField, CudaMatrixFreeConfig, LaunchShape};
pub use data::CudaMatrixFreeData;
pub use degree_transfer::{CudaDegreeTransfer, program as transfer_program};
pub use operator::CudaMatrixFree;
pub use program::{diagonal_programs, operator_programs, specialisations};
