//! What programs that use the library rely on.

mod cells;
mod linear_solver;
mod nodes;
mod regions;
mod settings;
mod transient;
mod values;
