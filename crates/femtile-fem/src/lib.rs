//! Finite elements, linear on simplices and of any degree on quadrilaterals and hexahedra: constraints, forms, assembly,
//! functionals, gradient recovery.
#![deny(unsafe_code)]
// Loops over corners and axes carry the indices of the formulas they compute.
#![allow(clippy::needless_range_loop)]

pub mod assembly;
pub mod constraints;
mod error;
mod evaluation;
pub mod forms;
pub mod functionals;
mod incidence;
pub mod recovery;
mod right_side;
mod source_totals;
pub mod tensor;

pub use assembly::{
    AssembledSystem, Assembly, AssemblyKernels, AssemblyProblem, DeviceState, WithoutMatrix, assemble,
    assemble_interruptible, cuda_specialisations,
};
pub use constraints::Constraints;
pub use error::FemError;
pub use forms::{BoundaryCondition, Coefficient, Condition, Conditions, Form, PointFunction, Slopes, State};
pub use right_side::load;
pub use source_totals::SourceTotals;
