//! The library as programs use it.

mod axisymmetric;
mod capacity;
mod cells;
mod equations;
mod fibres;
mod forms;
mod gradients;
mod linear_solver;
mod modes;
mod nodes;
mod nonlinear;
mod nonlinear_in_time;
mod orders_in_time;
mod regions;
mod settings;
mod sides;
mod transient;
mod values;
