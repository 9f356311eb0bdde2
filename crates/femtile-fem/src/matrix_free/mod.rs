//! Operators that are applied cell by cell and never stored.

mod cpu;
pub(crate) mod cuda;
pub mod geometry;
mod metric;
mod quadrature;
pub mod reference;

pub use cpu::{CellLoop, CellWork, MatrixFree, MatrixFreeConfig, Visit};
pub use cuda::{CudaMatrixFree, CudaMatrixFreeConfig, Geometry, Shape};
pub use metric::Terms;
pub use quadrature::CellRule;
