//! Problems of equations that are data: linear elasticity, convection and diffusion, or a text of the user.
//!
//! A [`FormProblem`] is an [`Equation`](femtile_form::Equation) on a mesh with coefficients and conditions. It is assembled on a
//! CPU by `femtile-operator` and solved as a matrix, by one rank or several; a [`FormSolution`] has u and what is computed from
//! it.
//!
//! [`recovery`] has gradients recovered at nodes and the estimate of the error.
//!
//! [`solve`] has linear forms, [`newton`] the others: an [`equation`] is one at a time t, a [`rank_form`] its cells on a rank with
//! the matrix of its tangent. [`in_time`] has runs in time, whose [`stages`] are equations with a rate ([`stage`]); [`modes`] has eigenvalues.

mod approximation;
mod cell_metric;
mod continuation;
mod diffusion;
mod equation;
mod evaluation;
mod functionals;
mod given;
mod gradient;
mod in_time;
mod inside;
mod integral;
mod interface;
mod kernel;
mod lower_degree;
mod manufactured;
mod modes;
mod newton;
mod objectivity;
mod on_ranks;
mod output;
mod part;
mod problem;
mod rank_form;
mod reach;
mod recovery;
mod relations;
mod side_matrix;
mod solution;
mod solve;
mod stage;
mod stages;
mod stress;
mod taylor;
mod ties;
mod totals;

pub use continuation::{Continuation, LoadStep};
pub use gradient::{FormAt, Functional};
pub use in_time::FormObserver;
pub use integral::FormIntegral;
pub use interface::{InterfaceFlux, InterfacePlace};
pub use manufactured::{ErrorNorms, ManufacturedBoundary};
pub use modes::Mode;
pub use problem::FormProblem;
pub use side_matrix::SideFluxes;
pub use solution::FormSolution;
pub use stress::Stress;
pub use ties::{Periodic, SideMap};
