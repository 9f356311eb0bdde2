//! The program as its users call it.

mod bad_input;
mod behaviour;
mod common;
mod examples;
mod memory;
mod reproduce;
mod spmv;
mod tridiagonal;
