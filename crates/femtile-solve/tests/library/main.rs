//! What programs that use the library rely on.

mod linear_solver;
mod regions;
mod settings;
mod values;
