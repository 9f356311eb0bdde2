//! Operators that are applied cell by cell and never stored.

pub mod geometry;
mod quadrature;
pub mod reference;

pub use quadrature::CellRule;
