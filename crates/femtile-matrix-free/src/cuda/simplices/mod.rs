//! The tangent of a form on triangles and tetrahedra on a GPU: patches of cells in shared memory, no atomics.
//!
//! A block gathers each unknown of a patch once and sums its places in a fixed order. A tangent that is constant in each cell acts
//! on coefficients of an orthonormal basis ([`tables`]), any other one at quadrature points.

mod data;
#[allow(unsafe_code)]
mod operator;
mod patches;
mod tables;
mod variant;

pub use data::{CudaSimplicesData, simplex_metric_programs, simplex_programs};
pub use operator::CudaSimplices;
