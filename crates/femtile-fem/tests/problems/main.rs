//! Problems with known answers, on generated and on real meshes.

mod any_space;
mod boundary;
mod common;
mod conformance;
mod fluxes;
mod linearized;
mod manufactured;
mod nafems_t4;
mod recovery;
mod samples;
mod tensor_orders;
mod tensor_problems;
mod tensor_samples;
mod threads;
