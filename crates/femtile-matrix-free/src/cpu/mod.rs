//! The operator on a CPU: SIMD across cells, threads without atomics.

mod ahead;
mod batch_metrics;
#[allow(unsafe_code)]
mod cell_loop;
mod cells;
mod choice;
#[allow(unsafe_code)]
mod degree_transfer;
mod diagonal;
#[allow(unsafe_code)]
mod exchange;
mod layout;
mod maps;
mod numbers;
#[allow(unsafe_code)]
mod operator;
mod parts;
mod schedule;
#[cfg(test)]
mod tests;
mod visits;

pub use cell_loop::{CellLoop, CellWork};
pub use degree_transfer::DegreeTransfer;
pub use operator::{MatrixFree, MatrixFreeConfig};
pub use visits::Visit;
