//! Operators of forms: the general path against the reference, the reference against differences, and known solutions.
#![allow(clippy::unwrap_used)]
// Loops over components and axes carry the indices of the formulas they compute.
#![allow(clippy::needless_range_loop)]

mod agreement;
mod benchmarks;
mod convection;
mod elasticity;
mod errors;
mod meshes;
mod problems;
#[path = "../../../femtile-form/tests/forms/random.rs"]
mod random;
mod simplices;
mod surfaces;
mod tuned;
