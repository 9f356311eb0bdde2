//! Acceptance tests that an iterate must pass before any method reports convergence.
//!
//! A run iterates until its recurrence meets a tolerance. For all methods these tests decide which runs a solve
//! consists of, and when it has converged. They use the true residual, the preconditioned residual, and a bound of
//! the energy error from the coefficients of conjugate gradients (`krylov/energy.rs`). A failed test starts another
//! run, so kernels need no logic for it. The best iterate of a run that ended badly is recomputed, so no copy is
//! kept. `docs/krylov-methods.md` has the derivation; `error_study` of `femtile-conformance` tests it on random
//! cases.

mod measured;
mod verdict;

use std::ops::ControlFlow;
use std::time::Instant;

use femtile_device::{Buffer, Scalar};

use super::cg::{CgHistory, CgOutcome, KrylovConfig};
use super::energy::smallest_ritz_value;
use super::failed_test::{AcceptanceTest, FailedTest};
use super::rescaled::Rescaled;
use super::residual::{fits, norm, over_ranks, residual};
use super::rounding::RowTerms;
use super::{Monitor, Stop};
use crate::comm::Communicator;
use crate::vector::VectorKernels;
use crate::{LinalgError, LinearOperator, Preconditioner};
pub(super) use measured::Measured;
pub(super) use verdict::MIN_STEPS;

/// Factor over the tolerance that the recomputed residual may reach.
const RESIDUAL_SLACK: f64 = 2.0;

/// Factor by which each run after the first must improve the worst test.
const GAIN: f64 = 1.5;

/// Runs without that gain, each with a tolerance a hundred times smaller, before the solve counts as stagnated.
const MAX_STALLS: i32 = 1;

/// A run after the first has stagnated if the residual does not fall in this many iterations plus the number of
/// all earlier ones: its tolerance may lie below rounding.
const LATER_WINDOW: usize = 1000;

/// Systems of at most this many unknowns are verified whatever their settings.
const ALWAYS_VERIFIED: f64 = 4096.0;

/// Ratio of eigenvalues of $M^{-1} A$ below which rounding decides on the sign of the smaller one.
const NEARLY_SINGULAR: f64 = 1e-12;

/// The parts of $A x = b$ and its preconditioner.
pub(super) struct PreconditionedSystem<'a, T: Scalar, D: VectorKernels<T>, C> {
    pub a: &'a dyn LinearOperator<T, D>,
    pub m: &'a dyn Preconditioner<T, D>,
    pub b: &'a Buffer<T, D>,
    pub comm: &'a C,
}

impl<T: Scalar, D: VectorKernels<T>, C> Clone for PreconditionedSystem<'_, T, D, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Scalar, D: VectorKernels<T>, C> Copy for PreconditionedSystem<'_, T, D, C> {}

/// The parameters of one run of a method: `config` counts from the start of the run, and its tolerance is relative to
/// `b_norm`.
pub(super) struct Run<'a> {
    pub config: KrylovConfig,
    pub b_norm: f64,
    pub monitor: &'a mut dyn Monitor,
}

/// The result of one run.
pub(super) struct RunEnd {
    pub stop: Stop,
    pub history: CgHistory,
    /// The preconditioned residual at the start and at the end, if the run has computed it.
    pub preconditioned: Option<[Size; 2]>,
}

/// The preconditioned norms of a residual $r$.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    /// $r^\mathsf{T} M^{-1} r$.
    pub rho: f64,
    /// $\|M^{-1} r\|_2$.
    pub z_norm: f64,
}

impl Size {
    /// The larger of the two ratios to another residual.
    fn over(self, other: Self) -> f64 {
        let energy = (self.rho.abs() / other.rho.abs()).sqrt();
        let ratio = energy.max(self.z_norm / other.z_norm);
        if ratio.is_nan() { 0.0 } else { ratio }
    }
}

/// Solves by runs of a method until the solution passes all tests, or a run ends without meeting its tolerance.
///
/// 1. $\|b - A x\|_2 \le 2 \tau \|b\|_2$, recomputed;
/// 2. $\|M^{-1} r\|_2 \le 5 \tau \|M^{-1} b\|_2$ and
///    $r^\mathsf{T} M^{-1} r \le (5 \tau)^2\, b^\mathsf{T} M^{-1} b$, and the same with the diagonal of A if
///    there is a matrix, so that rows with large entries do not hide the others;
/// 3. the bound of the energy error ([`energy_error`]) is at most $20 \tau \|x\|_A$. A method without the
///    coefficients of conjugate gradients, or with very few of them, gets them from a few steps on $A e = r$.
///    There is no bound if these show that A is indefinite.
///
/// Rounding may keep the computed residual above the first bound although the recurrence has converged. The
/// other two tests then decide on the computed residual. The second, with a preconditioner that is not
/// diagonal, uses the entries that rounding does not explain ([`RowTerms`]). The third uses $50 \tau$,
/// because its bound is then that of any residual as large as this one and what rounding may hide. After a
/// test that fails the method continues from its iterate with a smaller tolerance.
///
/// b is first scaled by a power of two if its squares would leave the range of numbers. A run that breaks
/// down, diverges or stagnates leaves the best iterate that it had.
///
/// # Cost
/// One product at the end and a few passes over vectors. For methods without coefficients, and runs of less
/// than eight steps, up to 32 steps of conjugate gradients with a diagonal preconditioner, three with any
/// other. If the system is verified, about half the number of iterations of the run, at most that number and
/// a thousand. At the rounding level three more products, and vectors pass through the host.
pub(super) fn solve<T: Scalar, D: VectorKernels<T>, C: Communicator>(
    x: &mut Buffer<T, D>,
    system: PreconditionedSystem<'_, T, D, C>,
    config: &KrylovConfig,
    monitor: &mut dyn Monitor,
    run: &mut RunMethod<'_, T, D, C>,
) -> Result<CgOutcome, LinalgError> {
    config.check()?;
    fits(system.a, x, system.b)?;
    let Some(rescaled) = Rescaled::new(x, system.b, system.comm)? else {
        return Ok(CgOutcome::at_once());
    };
    let system = PreconditionedSystem { b: rescaled.b(system.b), ..system };
    let solve = Solve::new(x, system, config, rescaled.b_norm)?;
    let (mut outcome, _) = solve.finish(x, None, monitor, run)?;
    rescaled.restore(x, &mut outcome)?;
    Ok(outcome)
}

/// Continues as [`solve`] does after its first run, which began from `start` and ended with `x`; also returns
/// the smallest Ritz value found.
pub(super) fn resume<T: Scalar, D: VectorKernels<T>, C: Communicator>(
    x: &mut Buffer<T, D>,
    system: PreconditionedSystem<'_, T, D, C>,
    (config, b_norm, begun): (&KrylovConfig, f64, Instant),
    (start, first): (&Buffer<T, D>, RunEnd),
    monitor: &mut dyn Monitor,
    run: &mut RunMethod<'_, T, D, C>,
) -> Result<(CgOutcome, Option<f64>), LinalgError> {
    let solve = Solve { begun, ..Solve::new(start, system, config, b_norm)? };
    solve.finish(x, Some(first), monitor, run)
}

/// One run of a method from x.
pub(super) type RunMethod<'a, T, D, C> = dyn FnMut(&mut Buffer<T, D>, PreconditionedSystem<'_, T, D, C>, Run<'_>) -> Result<RunEnd, LinalgError>
    + 'a;

/// A solve under way.
struct Solve<'a, T: Scalar, D: VectorKernels<T>, C> {
    system: PreconditionedSystem<'a, T, D, C>,
    config: &'a KrylovConfig,
    b_norm: f64,
    begun: Instant,
    /// The iterate at the start of the present run; none for zeros.
    start: Option<Buffer<T, D>>,
    /// The right side as the preconditioner sees it, once it is known.
    of_b: Option<Size>,
    /// The diagonal of the operator, if the preconditioner is the identity.
    diagonal: Option<Buffer<T, D>>,
    /// Whether the energy error is computed from the residual equation.
    is_verified: bool,
    smallest_ritz: Option<f64>,
    /// The Ritz value of the last bound of the energy error, if it is one of $M^{-1} A$.
    bounding_ritz: Option<f64>,
    residuals: Vec<f64>,
    /// The relative residual of the returned iterate, if it is not the last one.
    relative_residual: Option<f64>,
    energy_error: Option<f64>,
    energy_norm: f64,
    /// As [`CgOutcome::failed_test`].
    failed_test: Option<FailedTest>,
}

/// The result of the acceptance tests for an iterate.
struct Verdict {
    r_norm: f64,
    /// The largest ratio of a measured value to its bound; at most 1 if all tests are passed.
    worst: f64,
    /// The test of that ratio, if it failed.
    failed: Option<FailedTest>,
}

impl<'a, T: Scalar, D: VectorKernels<T>, C: Communicator> Solve<'a, T, D, C> {
    fn new(
        x: &Buffer<T, D>,
        system: PreconditionedSystem<'a, T, D, C>,
        config: &'a KrylovConfig,
        b_norm: f64,
    ) -> Result<Self, LinalgError> {
        let start = if norm(x, system.comm)? == 0.0 { None } else { Some(copy(x)?) };
        let n = over_ranks(x.device(), &[x.len() as f64], system.comm)?[0];
        Ok(Self {
            system,
            config,
            is_verified: config.is_verified || n <= ALWAYS_VERIFIED,
            b_norm,
            begun: Instant::now(),
            start,
            of_b: None,
            diagonal: None,
            smallest_ritz: None,
            bounding_ritz: None,
            residuals: Vec::new(),
            relative_residual: None,
            energy_error: None,
            energy_norm: 0.0,
            failed_test: None,
        })
    }

    fn finish(
        mut self,
        x: &mut Buffer<T, D>,
        first: Option<RunEnd>,
        monitor: &mut dyn Monitor,
        run: &mut RunMethod<'_, T, D, C>,
    ) -> Result<(CgOutcome, Option<f64>), LinalgError> {
        let (mut tolerance, mut before, mut stalls) = (self.config.tolerance, f64::INFINITY, 0);
        let mut end = match first {
            Some(first) => first,
            None => self.run(x, tolerance, monitor, run)?,
        };
        self.note(&end);
        loop {
            let mut verdict = self.judge(x, &end)?;
            self.failed_test = verdict.failed;
            // A later run may be asked for less than rounding allows, and bring what is needed all the same.
            let is_later = before.is_finite();
            let has_ended_well = match end.stop {
                Stop::Converged => true,
                Stop::Stagnated => is_later || verdict.worst <= 1.0,
                _ => false,
            };
            if !has_ended_well {
                self.restore_best(x, &end, &mut verdict, run)?;
                let stop = self.reason(x, &end)?;
                return Ok(self.outcome(stop, verdict.r_norm));
            }
            if verdict.worst <= 1.0 {
                return Ok(self.outcome(Stop::Converged, verdict.r_norm));
            }
            stalls += i32::from(verdict.worst * GAIN > before);
            if stalls > MAX_STALLS || !verdict.worst.is_finite() {
                return Ok(self.outcome(Stop::Stagnated, verdict.r_norm));
            }
            before = before.min(verdict.worst);
            tolerance = verdict.r_norm / self.b_norm / (2.0 * verdict.worst * 100f64.powi(stalls));
            self.start = Some(copy(x)?);
            end = self.run(x, tolerance, monitor, run)?;
            self.note(&end);
        }
    }

    /// Performs one run to a tolerance, within what is left of the limits.
    fn run(
        &self,
        x: &mut Buffer<T, D>,
        tolerance: f64,
        monitor: &mut dyn Monitor,
        run: &mut RunMethod<'_, T, D, C>,
    ) -> Result<RunEnd, LinalgError> {
        let done = self.residuals.len().saturating_sub(1);
        let window = if self.residuals.is_empty() { usize::MAX } else { LATER_WINDOW + done };
        let config = KrylovConfig {
            tolerance,
            stagnation_window: self.config.stagnation_window.min(window),
            max_iterations: self.config.max_iterations.saturating_sub(done),
            time_limit: self.config.time_limit.map(|limit| limit.saturating_sub(self.begun.elapsed())),
            ..self.config.clone()
        };
        let mut monitor = Later { done, monitor };
        run(x, self.system, Run { config, b_norm: self.b_norm, monitor: &mut monitor })
    }

    /// Stores the results of a run.
    fn note(&mut self, end: &RunEnd) {
        let is_first = self.start.is_none() && self.residuals.is_empty();
        let relative = end.history.r_dot_r.iter().map(|r_dot_r| r_dot_r.sqrt() / self.b_norm);
        // A later run begins with the residual that the one before has ended with.
        self.residuals.extend(relative.skip(usize::from(!self.residuals.is_empty())));
        if is_first {
            self.of_b = end.preconditioned.map(|[start, _]| start);
        }
        let ritz = smallest_ritz_value(&end.history.steps);
        self.smallest_ritz = [self.smallest_ritz, ritz].into_iter().flatten().reduce(f64::min);
    }

    /// Goes back to the best iterate of a run that ended badly, by running it again as far as that.
    fn restore_best(
        &mut self,
        x: &mut Buffer<T, D>,
        end: &RunEnd,
        verdict: &mut Verdict,
        run: &mut RunMethod<'_, T, D, C>,
    ) -> Result<(), LinalgError> {
        if !matches!(end.stop, Stop::Breakdown { .. } | Stop::Diverged | Stop::Stagnated) {
            return Ok(());
        }
        let known = end.history.r_dot_r.iter().enumerate().filter(|(_, r_dot_r)| r_dot_r.is_finite());
        let Some((best, least)) = known.min_by(|a, b| a.1.total_cmp(b.1)) else { return Ok(()) };
        if verdict.r_norm <= RESIDUAL_SLACK * least.sqrt() {
            return Ok(());
        }
        self.back_to_start(x)?;
        let config = KrylovConfig {
            tolerance: 0.0,
            max_iterations: best,
            stagnation_window: usize::MAX,
            divergence_factor: f64::INFINITY,
            time_limit: None,
            look_every: self.config.look_every,
            is_verified: false,
        };
        run(x, self.system, Run { config, b_norm: self.b_norm, monitor: &mut () })?;
        let PreconditionedSystem { a, b, comm, .. } = self.system;
        let mut r = Buffer::zeros(b.device(), b.len())?;
        residual(&mut r, a, x, b)?;
        verdict.r_norm = norm(&r, comm)?;
        self.relative_residual = Some(least.sqrt() / self.b_norm);
        let start = end.history.r_dot_r[0].sqrt();
        if verdict.r_norm > start || verdict.r_norm.is_nan() {
            self.back_to_start(x)?;
            verdict.r_norm = start;
            self.relative_residual = Some(start / self.b_norm);
        }
        self.energy_error = None;
        self.failed_test = self.residual_test(verdict.r_norm);
        Ok(())
    }

    /// Returns the test of the true residual if an iterate fails it.
    fn residual_test(&self, r_norm: f64) -> Option<FailedTest> {
        let tolerance = self.config.tolerance;
        let (value, bound) = (r_norm / self.b_norm, RESIDUAL_SLACK * tolerance);
        (value > bound).then_some(FailedTest { test: AcceptanceTest::Residual, value, bound, tolerance })
    }

    /// Returns why a run ended badly. An eigenvalue or residual that is no more than rounding may have any
    /// sign. A breakdown then says nothing about the matrix, and rounding is the reason.
    fn reason(&self, x: &Buffer<T, D>, end: &RunEnd) -> Result<Stop, LinalgError> {
        if !matches!(end.stop, Stop::Breakdown { .. }) {
            return Ok(end.stop);
        }
        let largest = end.history.steps.iter().map(|step| 1.0 / step.alpha).fold(0.0, f64::max);
        let is_singular = self.smallest_ritz.is_some_and(|ritz| ritz.abs() <= NEARLY_SINGULAR * largest);
        let PreconditionedSystem { a, b, comm, .. } = self.system;
        let mut r = Buffer::zeros(b.device(), b.len())?;
        residual(&mut r, a, x, b)?;
        let r_norm = norm(&r, comm)?;
        let is_rounding = r_norm.is_finite()
            && norm(&RowTerms::of(x, self.system)?.unexplained(&r)?, comm)? <= 0.5 * r_norm;
        Ok(if is_singular || is_rounding { Stop::Stagnated } else { end.stop })
    }

    fn back_to_start(&self, x: &mut Buffer<T, D>) -> Result<(), LinalgError> {
        let device = self.system.b.device();
        match &self.start {
            Some(start) => device.copy(x, start),
            None => device.fill(x, T::ZERO),
        }
    }

    fn outcome(self, stop: Stop, r_norm: f64) -> (CgOutcome, Option<f64>) {
        let outcome = CgOutcome {
            stop,
            iterations: self.residuals.len().saturating_sub(1),
            relative_residual: self.relative_residual.or(self.residuals.last().copied()).unwrap_or(f64::NAN),
            true_relative_residual: r_norm / self.b_norm,
            residuals: self.residuals,
            energy_error: self.energy_error,
            energy_norm: self.energy_norm,
            failed_test: self.failed_test.filter(|_| stop != Stop::Converged),
        };
        (outcome, self.bounding_ritz)
    }
}

fn copy<T: Scalar, D: VectorKernels<T>>(x: &Buffer<T, D>) -> Result<Buffer<T, D>, LinalgError> {
    let mut copy = Buffer::zeros(x.device(), x.len())?;
    x.device().copy(&mut copy, x)?;
    Ok(copy)
}

/// Counts the iterations of a run after those before it.
struct Later<'a> {
    done: usize,
    monitor: &'a mut dyn Monitor,
}

impl Monitor for Later<'_> {
    fn iteration(&mut self, iteration: usize, relative_residual: f64) -> ControlFlow<Stop> {
        if iteration == 0 && self.done > 0 {
            return ControlFlow::Continue(());
        }
        self.monitor.iteration(self.done + iteration, relative_residual)
    }
}
