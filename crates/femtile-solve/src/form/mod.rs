//! Problems of equations that are data: linear elasticity, convection and diffusion, or a text of the user.
//!
//! A [`FormProblem`] is an [`Equation`](femtile_form::Equation) on a mesh with coefficients and conditions. It is assembled on a
//! CPU by `femtile-operator` and solved as a matrix, by one rank or several; a [`FormSolution`] has u and what is computed from
//! it.

mod diffusion;
mod functionals;
mod given;
mod kernel;
mod on_ranks;
mod output;
mod part;
mod problem;
mod solution;
mod solve;
mod stress;

pub use problem::FormProblem;
pub use solution::FormSolution;
pub use stress::Stress;
