//! Operators that are applied cell by cell and never stored.

mod cpu;
pub mod geometry;
mod metric;
mod quadrature;
pub mod reference;

pub use cpu::{CellLoop, CellWork, MatrixFree, MatrixFreeConfig, Visit};
pub use metric::Terms;
pub use quadrature::CellRule;
