//! Operators that are applied cell by cell and never stored.

mod cpu;
pub(crate) mod cuda;
mod curvature;
pub mod geometry;
mod metric;
mod metric_evaluation;
pub(crate) mod point_tables;
mod quadrature;
pub mod reference;

pub use cpu::{CellLoop, CellWork, DegreeTransfer, MatrixFree, MatrixFreeConfig, Visit};
pub use cuda::{CudaDegreeTransfer, CudaMatrixFree, CudaMatrixFreeConfig, Shape};
pub use metric::Terms;
pub use metric_evaluation::MetricEvaluation;
pub use quadrature::CellRule;
