//! The library as programs use it.

mod cells;
mod fibres;
mod linear_solver;
mod nodes;
mod regions;
mod settings;
mod transient;
mod values;
