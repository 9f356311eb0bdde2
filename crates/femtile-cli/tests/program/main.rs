//! The program as its users call it.

mod bad_input;
mod behaviour;
mod common;
mod examples;
mod kills;
mod memory;
mod process;
mod reproduce;
mod spmv;
mod tridiagonal;
