//! Forms at a point: residual, tangent, class, coefficients.
#![allow(clippy::unwrap_used)]

mod class;
mod coefficients;
mod errors;
mod exact;
mod point;
mod random;
mod tangent;
