//! Operators that are applied cell by cell and never stored.

pub mod geometry;
