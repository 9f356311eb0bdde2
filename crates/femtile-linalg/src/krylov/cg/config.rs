use std::time::Duration;

use crate::LinalgError;
use crate::krylov::{FailedTest, Stop};

/// Settings that all Krylov methods share.
#[derive(Debug, Clone, PartialEq)]
pub struct KrylovConfig {
    /// The solve ends when $\|r\|_2 \le$ `tolerance` $\cdot \|b\|_2$ and the preconditioned residual and the bound of the
    /// energy error are of that order too; positive and below 1. Default 1e-10.
    pub tolerance: f64,
    /// The solve ends after this many iterations. Default 10,000.
    pub max_iterations: usize,
    /// The solve ends after this time; none by default.
    pub time_limit: Option<Duration>,
    /// The solve counts as stagnated after this many iterations without a smaller residual. Default 5,000.
    pub stagnation_window: usize,
    /// The solve counts as diverged when the residual grows by this factor over its smallest value. Default 1e12.
    pub divergence_factor: f64,
    /// Iterations from one look of the host at the residual to the next, 1 to 32; the device's choice by
    /// default. The device itself tests for convergence in every iteration: the iterate, its number and
    /// the residuals do not depend on this, only how soon the monitor and the other limits are heard.
    pub look_every: Option<usize>,
    /// Whether the error of a solution is verified by iterations on the residual equation $A e = r$. This
    /// finds errors along eigenvectors that the right side hardly contains, as with coefficients of high
    /// contrast. Systems of up to 4,096 unknowns are always verified. Default false.
    pub is_verified: bool,
}

impl Default for KrylovConfig {
    fn default() -> Self {
        Self {
            tolerance: 1e-10,
            max_iterations: 10_000,
            time_limit: None,
            stagnation_window: 5_000,
            divergence_factor: 1e12,
            look_every: None,
            is_verified: false,
        }
    }
}

impl KrylovConfig {
    pub(in crate::krylov) fn check(&self) -> Result<(), LinalgError> {
        if self.tolerance > 0.0 && self.tolerance < 1.0 {
            return Ok(());
        }
        let message = format!("{} does not lie between 0 and 1; 1e-10 is a good choice", self.tolerance);
        Err(LinalgError::Setting { field: "tolerance", message })
    }
}

/// The outcome of a solve by a Krylov method.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a solve may end without converging: look at `stop`"]
pub struct CgOutcome {
    /// Why it ended.
    pub stop: Stop,
    /// Number of iterations. The returned iterate is that of the last one, or the best one after a breakdown,
    /// divergence or stagnation.
    pub iterations: usize,
    /// $\|r\|_2 / \|b\|_2$ by the recurrence, of the iterate returned.
    pub relative_residual: f64,
    /// $\|b - A x\|_2 / \|b\|_2$ of the returned iterate, computed afresh. It exceeds the recurred residual
    /// if rounding keeps x from getting closer.
    pub true_relative_residual: f64,
    /// $\|r\| / \|b\|$ before the first and after every iteration; NaN after iterations that are combined
    /// with the next ones.
    pub residuals: Vec<f64>,
    /// An estimate of the energy norm $\|x_* - x\|_A$ of the error against the exact solution of $A x = b$.
    /// It is an upper bound as far as the method has seen the smallest eigenvalue. None if the method does
    /// not have the coefficients of conjugate gradients.
    pub energy_error: Option<f64>,
    /// The energy norm $\|x\|_A$ of the solution.
    pub energy_norm: f64,
    /// The acceptance test that the iterate returned fails by most; none if it has converged, or no test is
    /// known.
    pub failed_test: Option<FailedTest>,
}

impl CgOutcome {
    /// The outcome for b = 0, with x = 0.
    pub(in crate::krylov) fn at_once() -> Self {
        Self {
            stop: Stop::Converged,
            iterations: 0,
            relative_residual: 0.0,
            true_relative_residual: 0.0,
            residuals: vec![0.0],
            energy_error: Some(0.0),
            energy_norm: 0.0,
            failed_test: None,
        }
    }

    /// Describes why the solve ended, after "the solve": [`CgOutcome::stop`], with the test that kept it from converging, and
    /// advice.
    pub fn reason(&self) -> String {
        let Self { stop, failed_test: Some(failed), .. } = self else { return self.stop.to_string() };
        let meets_tolerance = self.true_relative_residual <= failed.tolerance;
        let but = if meets_tolerance { "‖b − Ax‖ meets the tolerance, but " } else { "" };
        match stop {
            Stop::Stagnated => format!("stagnated: {but}{failed}; {}", failed.advice()),
            Stop::MaxIterations | Stop::TimeLimit | Stop::Interrupted => format!("{stop}; {but}{failed}"),
            _ => stop.to_string(),
        }
    }

    /// Adds the iterations of a solve whose iterate this one has continued.
    pub fn after(mut self, before: &Self) -> Self {
        self.iterations += before.iterations;
        let own = self.residuals.get(1..).unwrap_or_default();
        self.residuals = [&before.residuals, own].concat();
        self
    }
}
