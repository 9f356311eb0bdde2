//! The operator on an NVIDIA GPU: columns of nodes in registers, lines in shared memory, no atomics.
//!
//! A thread holds a column of nodes along the last axis in registers; tables are literals. A block processes
//! batches of cells without common unknowns, with barriers between them. All cells of a GPU have one metric
//! evaluation (`Terms::metric_on_gpus`), and programs compiled ahead follow the same rule. Scalar coefficients that
//! vary lie at points beside a constant metric.

mod batches;
mod config;
mod data;
#[allow(unsafe_code)]
mod degree_transfer;
#[allow(unsafe_code)]
mod facets;
mod groups;
mod metric;
#[allow(unsafe_code)]
mod operator;
mod point_metric;
mod point_tangent;
mod program;
#[allow(unsafe_code)]
mod rows;
mod simplices;
mod tables;
mod visited;

pub use config::{CellField, CudaMatrixFreeConfig, LaunchShape};
pub use data::CudaMatrixFreeData;
pub use degree_transfer::{CudaDegreeTransfer, program as transfer_program};
pub use operator::CudaMatrixFree;
pub use point_metric::PointMetric;
pub use point_tangent::{PointTangent, TangentText, tangent_programs};
pub use program::{diagonal_programs, operator_programs, specialisations};
pub use simplices::{CudaSimplices, CudaSimplicesData, simplex_metric_programs, simplex_programs};
