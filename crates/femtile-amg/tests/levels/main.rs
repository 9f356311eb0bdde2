//! Multigrid on the CPU, in one program: each of several would compile all of it again.

mod elasticity;
mod flat_cells;
mod hard_input;
mod preconditioner;
mod solver;
