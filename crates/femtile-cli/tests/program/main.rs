//! The program as its users call it.

mod bad_input;
mod behaviour;
mod cache;
mod common;
mod companion;
mod examples;
mod kills;
mod kills_in_time;
mod memory;
mod mesh;
mod orders;
mod overrides;
mod pictures;
mod places;
mod process;
mod profile;
mod simd;
mod solve_matrix;
mod study;
mod tridiagonal;
mod tridiagonal_forms;
