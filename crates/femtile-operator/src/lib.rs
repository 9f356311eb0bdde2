//! Discrete operators of variational forms.
//!
//! A [`Form`](femtile_form::Form) on a [`Space`](femtile_space::Space) is a [`DiscreteForm`]. Its residual and tangent are
//!
//! $$ r = E^\mathsf{T} B^\mathsf{T} f(B E u), \qquad A = E^\mathsf{T} B^\mathsf{T} D' B E, $$
//!
//! where E gathers the unknowns of a cell, B evaluates shape functions and their gradients at the quadrature points, and
//! $f = (f_0, f_1)$ and its tangent $D'$ act at each point.
//!
//! [`reference`](mod@reference) computes everything by plain loops; it is the oracle of the other paths.
#![deny(unsafe_code)]
// Loops over shape functions and axes carry the indices of the formulas they compute.
#![allow(clippy::needless_range_loop)]

mod at_point;
mod boundary_fluxes;
mod cpu;
mod cuda;
mod discrete_form;
mod error;
mod parameter;
pub mod reference;
mod sites;

pub use at_point::CellPoint;
pub use boundary_fluxes::ConormalFlux;
pub use cpu::{CpuOperator, Pattern};
pub use cuda::{
    CudaForm, CudaFormMatrix, CudaState, CudaTangent, CudaTangentData, cuda_specialisations, form_programs,
};
pub use discrete_form::{DiscreteForm, State};
pub use error::OperatorError;
pub use parameter::Differentiated;
