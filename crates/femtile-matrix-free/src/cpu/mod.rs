//! The operator on a CPU: SIMD across cells, threads without atomics.

mod batch_metrics;
#[allow(unsafe_code)]
mod cell_loop;
mod cell_unknowns;
mod cells;
#[allow(unsafe_code)]
mod degree_transfer;
mod diagonal;
#[allow(unsafe_code)]
mod gather_scatter;
mod layout;
mod maps;
mod metric_choice;
#[allow(unsafe_code)]
mod operator;
mod partition;
mod prefetch;
mod rows;
mod schedule;
#[cfg(test)]
mod tests;
mod visits;

pub use cell_loop::{CellLoop, CellWork};
pub use degree_transfer::DegreeTransfer;
pub use operator::{MatrixFree, MatrixFreeConfig};
pub use visits::Visit;
