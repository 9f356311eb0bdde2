//! The operator on a CPU: SIMD across cells, threads without atomics.
//!
//! Each lane of a vector holds a cell. Each batch of cells uses the cheapest metric evaluation that is valid for
//! all of them (`metric`): diagonal, constant, computed from the map, or stored. A fixed cost model chooses between
//! computed and stored metrics (`metric_choice`), so bits do not depend on timings.
//!
//! Contributions to unknowns that several threads share are buffered and summed in a fixed order. Bits depend on
//! the number of lanes, not on the number of threads. More: `docs/developers/high-order.md`.

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
