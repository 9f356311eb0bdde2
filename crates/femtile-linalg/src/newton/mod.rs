//! Newton's method for nonlinear equations, with a line search and inexact linear solves, on any device.
//!
//! An equation is known by its residual and by the solve of its linearization.

mod config;
mod outcome;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;

use femtile_device::Buffer;

use crate::LinalgError;
use crate::krylov::Monitor;
use crate::vector::VectorKernels;
pub use config::NewtonConfig;
pub use outcome::{NewtonOutcome, NewtonStop};

/// A nonlinear equation $r(u) = 0$ and its linearization $J(u)$, that of $-r$ or an approximation.
pub trait NonlinearEquation<D: VectorKernels<f64>> {
    /// The error of a failed evaluation; not converging is an outcome.
    type Error: From<LinalgError>;

    /// Evaluates $r(u)$ and the data of $J(u)$, and returns the norm of $r(u)$.
    ///
    /// # Errors
    /// Errors of the device. If r has no value, the norm is not finite, and the step is shortened.
    fn residual(&mut self, u: &Buffer<f64, D>) -> Result<ResidualNorm, Self::Error>;

    /// Solves $J \delta = r$ to a relative tolerance, at the point of the last call of [`NonlinearEquation::residual`].
    ///
    /// # Errors
    /// Errors of the solver and the device.
    fn correction(
        &mut self,
        delta: &mut Buffer<f64, D>,
        tolerance: f64,
    ) -> Result<CorrectionOutcome, Self::Error>;

    /// Solves $J \bar\delta = r$ to a relative tolerance, with r at the point of the last call of [`NonlinearEquation::residual`] and
    /// J at that of the last correction; none if the equation does not keep it.
    ///
    /// # Errors
    /// Errors of the solver and the device.
    fn simplified_correction(
        &mut self,
        _delta: &mut Buffer<f64, D>,
        _tolerance: f64,
    ) -> Result<Option<CorrectionOutcome>, Self::Error> {
        Ok(None)
    }

    /// Returns the norm that rounding errors may have in r, at the point of the last call of [`NonlinearEquation::residual`].
    ///
    /// # Errors
    /// Errors of the device.
    fn rounding(&mut self, _u: &Buffer<f64, D>, at: ResidualNorm) -> Result<f64, Self::Error> {
        Ok(ROUNDING * at.size)
    }

    /// Returns the norm of a vector, over all ranks if there are several.
    ///
    /// # Errors
    /// Errors of the device and of messages.
    fn norm(&self, v: &Buffer<f64, D>) -> Result<f64, Self::Error> {
        Ok(v.device().dot(v, v)?.sqrt())
    }

    /// Returns whether r is linear in u, so that one correction is the solution.
    fn is_linear(&self) -> bool {
        false
    }
}

/// The norm of a residual $r = b - A u$.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResidualNorm {
    /// $\|r\|$.
    pub norm: f64,
    /// The size to which the tolerance is relative: that of the terms, $\max(\|b\|, \|A u\|)$, or of the
    /// change in a time step.
    pub size: f64,
}

/// The outcome of a linear solve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CorrectionOutcome {
    /// Iterations.
    pub iterations: usize,
    /// Whether the method converged to the tolerance.
    pub has_converged: bool,
}

/// Newton's method.
///
/// $$ J(u_k)\,\delta_k = r(u_k) \text{ up to } \eta_k \|r(u_k)\|, \qquad u_{k+1} = u_k + \theta_k \delta_k $$
///
/// The tolerance $\eta_k = 0.9\,(\|r_k\| / \|r_{k-1}\|)^2$ of linear solves keeps quadratic convergence
/// without solves that are more accurate than the linearization. The length $\theta_k$ is 1, and shorter if
/// the residual would not decrease: the minimum of a parabola, between a tenth and a half of the previous
/// length. With an approximate J the method is a fixed-point iteration, such as that of Picard, which
/// converges linearly.
///
/// Where r grows, the step may still be a good one: in slender bodies that bend, the second order of a rotation stretches them, and
/// r has the stiffness of that. So the length is also right if the simplified correction falls, the next one with the same J,
///
/// $$ \|\bar\delta\| \le (1 - \theta/4)\,\|\delta\|, \qquad J(u_k)\,\bar\delta = r(u_k + \theta\delta), $$
///
/// whatever the scales of the rows of r; if it does not, the next length is
/// $\min(\theta^2\,\|\delta\| \,/\, 2\,\|\bar\delta - (1 - \theta)\,\delta\|,\ \theta / 2)$, at least θ/10, and θ/4 if the solve for it
/// does not converge.
///
/// A small residual says little if some rows of J are much larger than others.
/// [`NewtonConfig::checks_correction`] asks for the next correction as well, which estimates the error. The
/// method then ends with $\|\delta\| \le 5 \tau \|u\| (1 - q)$; q is the ratio of the last two corrections,
/// which matters if they shrink slowly.
///
/// # Cost
/// A residual and a linear solve each iteration; a residual, and a linear solve to one digit if the equation keeps J, more for each
/// length at which r does not fall; three vectors.
/// # Source
/// `[eisenstat1996]`, choice 2 with its safeguard, and the line search of section 5; `[deuflhard2011]`, section 3.3, the restricted
/// monotonicity test and its lengths.
#[derive(Debug, Clone, Copy, Default)]
pub struct Newton {
    config: NewtonConfig,
}

/// The tolerance of the first linear solve.
const FIRST: f64 = 0.01;
/// The factor over the tolerance that the last correction may reach, relative to u.
const CORRECTION_SLACK: f64 = 5.0;
/// The largest ratio of two corrections that counts as convergence.
const SLOWEST: f64 = 0.99;
/// The largest tolerance of a linear solve.
const LOOSEST: f64 = 0.1;
/// The share of the decrease that the linearization promises, which a step has to reach.
const DECREASE: f64 = 1e-4;
/// The largest tolerance of simplified corrections, of which only the size matters; of short lengths they are a small change.
const SIMPLIFIED: f64 = 0.1;
/// The shortest length of a step.
const SHORTEST: f64 = 1e-4;
/// A residual that is rounding, relative to its terms.
const ROUNDING: f64 = 1e-15;

impl Newton {
    /// Creates the method.
    pub fn new(config: NewtonConfig) -> Self {
        Self { config }
    }

    /// Solves the equation from the values in `u`, and leaves the last iterate there.
    ///
    /// # Errors
    /// [`LinalgError::Setting`]; errors of the equation. Not converging is an outcome.
    pub fn solve<D: VectorKernels<f64>, E: NonlinearEquation<D>>(
        &self,
        equation: &mut E,
        u: &mut Buffer<f64, D>,
        monitor: &mut dyn Monitor,
    ) -> Result<NewtonOutcome, E::Error> {
        self.config.check()?;
        let mut at = equation.residual(u)?;
        let mut outcome = NewtonOutcome {
            stop: NewtonStop::Undefined,
            iterations: 0,
            linear_iterations: 0,
            residuals: vec![relative(at)],
            lengths: Vec::new(),
        };
        if !at.norm.is_finite() {
            return Ok(outcome);
        }
        let zeros = || Buffer::zeros(u.device(), u.len()).map_err(LinalgError::from);
        let (mut delta, mut trial, mut simplified) = (zeros()?, zeros()?, zeros()?);
        let asked = self.config.reduction.map_or(f64::INFINITY, |share| share * at.norm);
        let mut forcing = FIRST;
        let mut correction = None;
        outcome.stop = loop {
            if let ControlFlow::Break(stop) = monitor.iteration(outcome.iterations, relative(at)) {
                break NewtonStop::Ended(stop);
            }
            let wanted = asked.min(self.config.tolerance * at.size).max(equation.rounding(u, at)?);
            let is_met = at.norm <= wanted;
            if is_met && (at.norm == 0.0 || !self.config.checks_correction) {
                break NewtonStop::Converged;
            }
            if outcome.iterations == self.config.max_iterations {
                break NewtonStop::MaxIterations;
            }
            let eta = match equation.is_linear() {
                true => wanted / at.norm,
                false if is_met => FIRST,
                false => forcing.max(0.5 * wanted / at.norm).min(LOOSEST),
            };
            let solved = equation.correction(&mut delta, eta)?;
            outcome.linear_iterations += solved.iterations;
            if self.config.checks_correction {
                let error = error_of(equation, u, &delta, &mut correction)?;
                if is_met && solved.has_converged && error <= CORRECTION_SLACK * self.config.tolerance {
                    break NewtonStop::Converged;
                }
            }
            outcome.iterations += 1;
            if equation.is_linear() {
                u.device().clone().axpby(u, 1.0, &delta, 1.0)?;
                outcome.lengths.push(1.0);
                break if solved.has_converged { NewtonStop::Converged } else { NewtonStop::LinearSolver };
            }
            // Beside rows whose rounding is large, what is small enough need not fall on.
            let enough = if is_met { wanted } else { 0.0 };
            let of = (at.norm, eta, enough);
            let Some((length, next)) =
                descend(equation, u, &delta, [&mut trial, &mut simplified], of, &mut outcome)?
            else {
                // An interruption ends linear solves as well.
                if let ControlFlow::Break(stop) = monitor.iteration(outcome.iterations, relative(at)) {
                    break NewtonStop::Ended(stop);
                }
                break if solved.has_converged { NewtonStop::NoDescent } else { NewtonStop::LinearSolver };
            };
            std::mem::swap(u, &mut trial);
            forcing = next_forcing(eta, next.norm / at.norm);
            outcome.lengths.push(length);
            outcome.residuals.push(relative(next));
            at = next;
        };
        Ok(outcome)
    }
}

/// Estimates the error of u, relative to it, from its correction and the size of the one before: the sum of a geometric series.
fn error_of<D: VectorKernels<f64>, E: NonlinearEquation<D>>(
    equation: &E,
    u: &Buffer<f64, D>,
    delta: &Buffer<f64, D>,
    before: &mut Option<f64>,
) -> Result<f64, E::Error> {
    let of_delta = equation.norm(delta)?;
    let size = if of_delta == 0.0 { 0.0 } else { of_delta / equation.norm(u)? };
    let ratio = before.replace(size).map_or(0.0, |before| (size / before).min(SLOWEST));
    Ok(size / (1.0 - ratio))
}

/// Writes $u + \theta\delta$ into `trial` with the first length θ at which the residual or the simplified correction is small
/// enough; none if there is none.
fn descend<D: VectorKernels<f64>, E: NonlinearEquation<D>>(
    equation: &mut E,
    u: &Buffer<f64, D>,
    delta: &Buffer<f64, D>,
    [trial, simplified]: [&mut Buffer<f64, D>; 2],
    (before, eta, enough): (f64, f64, f64),
    outcome: &mut NewtonOutcome,
) -> Result<Option<(f64, ResidualNorm)>, E::Error> {
    let device = u.device();
    let mut length = 1.0;
    while length >= SHORTEST {
        device.copy(trial, u)?;
        device.axpby(trial, length, delta, 1.0)?;
        let found = equation.residual(trial)?;
        if found.norm <= enough.max((1.0 - DECREASE * length * (1.0 - eta)) * before) {
            return Ok(Some((length, found)));
        }
        let next = match found.norm.is_finite() {
            true => equation.simplified_correction(simplified, SIMPLIFIED.min(length / 8.0))?,
            false => None,
        };
        let Some(solved) = next else {
            length = shorter(length, found.norm / before);
            continue;
        };
        outcome.linear_iterations += solved.iterations;
        let [of_delta, of_simplified] = [equation.norm(delta)?, equation.norm(simplified)?];
        if solved.has_converged && of_simplified <= (1.0 - 0.25 * length) * of_delta {
            return Ok(Some((length, found)));
        }
        // The part of the second order.
        device.axpby(simplified, length - 1.0, delta, 1.0)?;
        let wanted = 0.5 * length * length * of_delta / equation.norm(simplified)?;
        let is_known = solved.has_converged && wanted.is_finite();
        length *= if is_known { (wanted / length).clamp(0.1, 0.5) } else { 0.25 };
    }
    Ok(None)
}

/// Returns the next length if one has changed the residual by a factor: the minimum of the parabola through
/// both squares and the slope at zero.
fn shorter(length: f64, ratio: f64) -> f64 {
    let minimum = length * length / (ratio * ratio - 1.0 + 2.0 * length);
    match minimum.is_finite() && ratio.is_finite() {
        true => minimum.clamp(0.1 * length, 0.5 * length),
        false => 0.25 * length,
    }
}

/// Returns the tolerance of the next linear solve, after one with `eta` and a change of the residual by a factor.
fn next_forcing(eta: f64, ratio: f64) -> f64 {
    if ratio >= 1.0 {
        return FIRST;
    }
    let safeguard = 0.9 * eta * eta;
    let next = 0.9 * ratio * ratio;
    if safeguard > LOOSEST { next.max(safeguard) } else { next }
}

fn relative(at: ResidualNorm) -> f64 {
    if at.norm == 0.0 { 0.0 } else { at.norm / at.size }
}
