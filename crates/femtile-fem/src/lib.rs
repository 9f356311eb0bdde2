//! Finite elements, linear on simplices and of any degree on quadrilaterals and hexahedra: spaces, constraints, forms, assembly, functionals, recovered gradients.
#![deny(unsafe_code)]
// Loops over corners and axes carry the indices of the formulas they compute.
#![allow(clippy::needless_range_loop)]

pub mod assembly;
pub mod constraints;
pub mod dofs;
mod error;
pub mod forms;
pub mod functionals;
pub mod matrix_free;
pub mod recovery;
pub mod tensor;

pub use assembly::{
    Assembly, AssemblyKernels, AssemblyProblem, PatchAssembly, System, assemble, assemble_interruptible,
};
pub use constraints::Constraints;
pub use error::FemError;
pub use forms::{BoundaryCondition, Coefficient, Condition, Form, PointFunction};

/// The GPU programs that this crate ships, for checks that compile all of them.
pub fn cuda_specialisations() -> Vec<femtile_device::cuda::Specialisation> {
    let products = matrix_free::cuda::specialisations();
    assembly::cuda_specialisations().into_iter().chain(products).collect()
}
