//! Equations whose coefficients depend on u, by Newton's method or Picard's iteration, steady and in time.
//!
//! [`tangent`] is the linearization on a device, [`equation`] the residual with its linear solves, [`steady`] the problem
//! without time; `transient/nonlinear.rs` has the stages of those in time. A [`Domain`] is the mesh of a rank.
//!
//! `linear` keeps the preconditioner; checkpoints hold the point at which it was made. If the capacity depends on
//! u, the content $E_i = \int e(u) \varphi_i$ stands for M u (`mass`).

mod config;
mod domain;
mod equation;
mod linear;
mod mass;
mod report;
mod settings;
mod steady;
mod tangent;

use femtile_space::Space;

use crate::Discretization;
pub use config::{NonlinearConfig, NonlinearMethod};
pub(crate) use domain::Domain;
pub(crate) use equation::{DiscreteEquation, LARGEST_ROUNDING};
pub(crate) use linear::{Solved, TangentSolver};
pub use mass::MassMatrix;
pub(crate) use mass::{Mass, lump, lump_within};
pub use report::NonlinearReport;
pub(crate) use report::{Worst, as_linear};
pub(crate) use settings::{Typical, check, resolved};
pub(crate) use steady::{Shared, converge, newton, prepared, solve, typical, warning};
pub(crate) use tangent::Derivatives;

/// Returns the point of an unknown.
pub(crate) fn place_of(problem: &Discretization<'_>, unknown: usize) -> [f64; 3] {
    match problem.space() {
        Some(space) => Space::from(space).node_points()[unknown],
        None => problem.mesh.points[unknown],
    }
}
