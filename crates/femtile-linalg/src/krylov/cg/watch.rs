//! Watches the residual and decides when to stop.

use std::ops::ControlFlow;
use std::time::Instant;

use super::{CgConfig, CgOutcome, Sums};
use crate::krylov::{Monitor, Stop};

pub(super) struct Watch<'a> {
    config: &'a CgConfig,
    b_norm: f64,
    residuals: Vec<f64>,
    best: f64,
    best_iteration: usize,
    begun: Instant,
}

impl<'a> Watch<'a> {
    pub(super) fn new(config: &'a CgConfig, b_norm: f64) -> Self {
        let (residuals, begun) = (Vec::new(), Instant::now());
        Self { config, b_norm, residuals, best: f64::INFINITY, best_iteration: 0, begun }
    }

    /// Judges the sums of an iteration: first whether they make sense, then the residual.
    pub(super) fn step(
        &mut self,
        iteration: usize,
        sums: Sums,
        monitor: &mut dyn Monitor,
    ) -> ControlFlow<Stop> {
        let positive = |quantity, value: f64| {
            if value > 0.0 && value.is_finite() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(Stop::Breakdown { quantity, value })
            }
        };
        positive("p·Ap", sums.p_dot_q)?;
        if sums.r_dot_r > 0.0 {
            positive("r·z", sums.r_dot_z)?;
        }
        self.see(iteration, sums.r_dot_r.sqrt(), monitor)
    }

    /// Notes the residual norm after `iteration` and says whether to go on.
    pub(super) fn see(
        &mut self,
        iteration: usize,
        r_norm: f64,
        monitor: &mut dyn Monitor,
    ) -> ControlFlow<Stop> {
        let relative = r_norm / self.b_norm;
        if !relative.is_finite() {
            return ControlFlow::Break(Stop::Breakdown { quantity: "‖r‖/‖b‖", value: relative });
        }
        self.residuals.push(relative);
        if relative < self.best {
            (self.best, self.best_iteration) = (relative, iteration);
        }
        let asked = monitor.iteration(iteration, relative);
        if relative <= self.config.tolerance {
            return ControlFlow::Break(Stop::Converged);
        }
        asked?;
        self.limits(iteration, relative)
    }

    fn limits(&self, iteration: usize, relative: f64) -> ControlFlow<Stop> {
        let config = self.config;
        if iteration >= config.max_iterations {
            return ControlFlow::Break(Stop::MaxIterations);
        }
        if config.time_limit.is_some_and(|limit| self.begun.elapsed() >= limit) {
            return ControlFlow::Break(Stop::TimeLimit);
        }
        if relative > config.divergence_factor * self.best {
            return ControlFlow::Break(Stop::Diverged);
        }
        if iteration - self.best_iteration >= config.stagnation_window {
            return ControlFlow::Break(Stop::Stagnated);
        }
        ControlFlow::Continue(())
    }

    pub(super) fn outcome(self, stop: Stop, true_relative_residual: f64) -> CgOutcome {
        CgOutcome {
            stop,
            iterations: self.residuals.len().saturating_sub(1),
            relative_residual: self.residuals.last().copied().unwrap_or(f64::NAN),
            true_relative_residual,
            residuals: self.residuals,
        }
    }
}
