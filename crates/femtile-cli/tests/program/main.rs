//! The program as its users call it.

mod bad_input;
mod behaviour;
mod common;
mod examples;
mod places;
mod reproduce;
mod simd;
mod spmv;
mod tridiagonal;
