//! Forms at a point: residual, tangent, class, coefficients.
#![allow(clippy::unwrap_used)]

mod class;
mod coefficients;
mod derivation;
mod errors;
mod exact;
mod objectivity;
mod point;
mod random;
mod tangent;
