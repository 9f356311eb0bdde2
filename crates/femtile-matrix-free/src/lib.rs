//! Matrix-free operators on spaces of any degree on quadrilaterals and hexahedra: products cell by cell, without a stored matrix.
//!
//! [`MatrixFree`] runs on a CPU, [`CudaMatrixFree`] on an NVIDIA GPU. [`DegreeTransfer`] and [`CudaDegreeTransfer`] prolongate
//! and restrict between spaces of different degree on the same cells.
#![deny(unsafe_code)]
// Loops over corners and axes carry the indices of the formulas they compute.
#![allow(clippy::needless_range_loop)]

mod cpu;
mod cuda;
mod curvature;
mod device;
mod local_numbering;
mod metric;

pub use cpu::{CellLoop, CellWork, DegreeTransfer, MatrixFree, MatrixFreeConfig, Visit};
pub use cuda::{
    CellField, CudaDegreeTransfer, CudaMatrixFree, CudaMatrixFreeConfig, CudaMatrixFreeData, CudaSimplices,
    CudaSimplicesData, LaunchShape, PointMetric, PointTangent, TangentText, diagonal_programs,
    operator_programs, simplex_metric_programs, simplex_programs, specialisations as cuda_specialisations,
    tangent_programs, transfer_program,
};
pub use device::{MatrixFreeDevice, constrained, terms};
pub use femtile_space::geometry::{CellRule, MetricEvaluation};
pub use metric::Terms;
