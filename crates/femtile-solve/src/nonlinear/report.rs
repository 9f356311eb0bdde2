use std::fmt;

use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_linalg::newton::{NewtonOutcome, NewtonStop};

use crate::NonlinearMethod;

/// How a nonlinear equation was solved.
#[derive(Debug, Clone, PartialEq)]
pub struct NonlinearReport {
    /// The linearization.
    pub method: NonlinearMethod,
    /// Linearizations; in time and in load steps those of all steps.
    pub iterations: usize,
    /// ‖r‖/‖b‖ before the first and after every iteration; in time of the last stage, in load steps of the last step.
    pub residuals: Vec<f64>,
}

/// An unknown with its place, its value and its residual.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Worst {
    pub unknown: usize,
    pub point: [f64; 3],
    pub value: f64,
    pub residual: f64,
}

impl fmt::Display for Worst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { unknown, point: [x, y, z], value, residual } = self;
        write!(
            f,
            "the residual is largest, {residual:.2e}, at unknown {unknown} at ({x}, {y}, {z}), where u is {value}"
        )
    }
}

/// Returns a nonlinear iteration as the outcome of a linear solver, for reports and exit codes.
pub(crate) fn as_linear(outcome: &NewtonOutcome) -> CgOutcome {
    let stop = match outcome.stop {
        NewtonStop::Converged => Stop::Converged,
        NewtonStop::MaxIterations => Stop::MaxIterations,
        NewtonStop::Ended(stop) => stop,
        NewtonStop::NoDescent => Stop::Stagnated,
        _ => Stop::Diverged,
    };
    let last = outcome.residuals.last().copied().unwrap_or(f64::NAN);
    CgOutcome {
        stop,
        iterations: outcome.linear_iterations,
        relative_residual: last,
        true_relative_residual: last,
        residuals: outcome.residuals.clone(),
        energy_error: None,
        energy_norm: f64::NAN,
        failed_test: None,
    }
}
