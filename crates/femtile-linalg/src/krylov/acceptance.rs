//! Acceptance tests that an iterate must pass before any method reports convergence.

use std::ops::ControlFlow;
use std::time::Instant;

use femtile_device::{Buffer, Scalar};

use super::cg::{CgHistory, CgOutcome, CgStep, KrylovConfig};
use super::energy::{energy_error, smallest_ritz_value};
use super::rescaled::Rescaled;
use super::residual::{dot, fits, norm, residual};
use super::rounding::unexplained;
use super::{Monitor, Stop};
use crate::comm::Communicator;
use crate::vector::VectorKernels;
use crate::{LinalgError, LinearOperator, Preconditioner};

/// Factor over the tolerance that the recomputed residual may reach.
const RESIDUAL_SLACK: f64 = 2.0;

/// Factor over the tolerance that the preconditioned residual may reach.
const PRECONDITIONED_SLACK: f64 = 5.0;

/// Factors over the tolerance that the bound of the energy error may reach; the second where the residual is rounding and the
/// bound holds for any residual of its size.
const ENERGY_SLACK: [f64; 2] = [20.0, 50.0];

/// Minimum number of steps for an error bound from the coefficients: with a diagonal preconditioner, and with any other.
const MIN_STEPS: [usize; 2] = [8, 3];

/// Maximum number of steps on the residual equation, which bound the energy error where a run has fewer.
const PROBE: [usize; 2] = [32, 3];

/// Reduction of $r^\mathsf{T} M^{-1} r$ that ends these steps.
const PROBED: f64 = 1e-8;

/// Factor by which rounding may hide a part of the residual, in a system so small that few steps solve it.
const ROUNDED: f64 = 25.0;

/// Ratio to the largest pivot below which a Ritz value counts as zero, of a null space.
const SINGULAR: f64 = 1e-13;

/// Factor by which each run after the first must improve the worst test.
const GAIN: f64 = 1.5;

/// Runs without that gain, each with a tolerance a hundred times smaller, before the solve counts as stagnated.
const MAX_STALLS: i32 = 1;

/// A run after the first has stagnated after this many iterations, and as many as there were before it, without a smaller
/// residual: its tolerance may lie below rounding.
const LATER_WINDOW: usize = 1000;

/// The parts of $A x = b$ and its preconditioner.
pub(super) struct System<'a, T: Scalar, D: VectorKernels<T>, C> {
    pub a: &'a dyn LinearOperator<T, D>,
    pub m: &'a dyn Preconditioner<T, D>,
    pub b: &'a Buffer<T, D>,
    pub comm: &'a C,
}

impl<T: Scalar, D: VectorKernels<T>, C> Clone for System<'_, T, D, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Scalar, D: VectorKernels<T>, C> Copy for System<'_, T, D, C> {}

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
    /// The preconditioned residual at the start and at the end, where the run has computed it.
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
/// 2. $\|M^{-1} r\|_2 \le 5 \tau \|M^{-1} b\|_2$ and $r^\mathsf{T} M^{-1} r \le (5 \tau)^2\, b^\mathsf{T} M^{-1} b$, and the same with
///    the diagonal of A where there is a matrix, so that rows with large entries do not hide the others;
/// 3. the bound of the energy error ([`energy_error`]) is at most $20 \tau \|x\|_A$. A method without the coefficients of
///    conjugate gradients, or with very few of them, has them from a few steps on $A e = r$.
///
/// Where rounding keeps the computed residual above the first, the recurrence having met the tolerance, the other two
/// decide on the computed one: the second, with a preconditioner that is no diagonal, on the entries that rounding does not
/// explain ([`unexplained`]), the third with $50 \tau$, as its bound is then that of any residual of this size. After a
/// test that fails the method continues from its iterate with a smaller tolerance.
///
/// b is first scaled by a power of two where its squares would leave the range of numbers. A run that breaks down,
/// diverges or stagnates leaves the best iterate that it had.
///
/// # Cost
/// One product at the end and a few passes over vectors; for methods without coefficients, and runs of less than eight
/// steps, up to 32 steps of conjugate gradients with a diagonal preconditioner, three with any other.
pub(super) fn solve<T: Scalar, D: VectorKernels<T>, C: Communicator>(
    x: &mut Buffer<T, D>,
    system: System<'_, T, D, C>,
    config: &KrylovConfig,
    monitor: &mut dyn Monitor,
    run: &mut RunMethod<'_, T, D, C>,
) -> Result<CgOutcome, LinalgError> {
    config.check()?;
    fits(system.a, x, system.b)?;
    let Some(rescaled) = Rescaled::new(x, system.b, system.comm)? else {
        return Ok(CgOutcome::at_once());
    };
    let system = System { b: rescaled.b(system.b), ..system };
    let mut outcome = Solve::new(x, system, config, rescaled.b_norm)?.finish(x, monitor, run)?;
    rescaled.restore(x, &mut outcome)?;
    Ok(outcome)
}

/// One run of a method from x.
pub(super) type RunMethod<'a, T, D, C> =
    dyn FnMut(&mut Buffer<T, D>, System<'_, T, D, C>, Run<'_>) -> Result<RunEnd, LinalgError> + 'a;

/// A solve under way.
struct Solve<'a, T: Scalar, D: VectorKernels<T>, C> {
    system: System<'a, T, D, C>,
    config: &'a KrylovConfig,
    b_norm: f64,
    begun: Instant,
    /// Where the present run began; none for zeros.
    start: Option<Buffer<T, D>>,
    /// The right side as the preconditioner sees it, once it is known.
    of_b: Option<Size>,
    /// The diagonal of the operator, where the preconditioner is the identity.
    diagonal: Option<Buffer<T, D>>,
    smallest_ritz: Option<f64>,
    residuals: Vec<f64>,
    /// That of the iterate which is left, where it is not the last one.
    relative_residual: Option<f64>,
    energy_error: Option<f64>,
    energy_norm: f64,
}

/// The result of the acceptance tests for an iterate.
struct Verdict {
    r_norm: f64,
    /// The largest ratio of what is found to what is allowed; at most 1 where all tests are passed.
    worst: f64,
}

impl<'a, T: Scalar, D: VectorKernels<T>, C: Communicator> Solve<'a, T, D, C> {
    fn new(
        x: &Buffer<T, D>,
        system: System<'a, T, D, C>,
        config: &'a KrylovConfig,
        b_norm: f64,
    ) -> Result<Self, LinalgError> {
        let start = if norm(x, system.comm)? == 0.0 { None } else { Some(copy(x)?) };
        Ok(Self {
            system,
            config,
            b_norm,
            begun: Instant::now(),
            start,
            of_b: None,
            diagonal: None,
            smallest_ritz: None,
            residuals: Vec::new(),
            relative_residual: None,
            energy_error: None,
            energy_norm: 0.0,
        })
    }

    fn finish(
        mut self,
        x: &mut Buffer<T, D>,
        monitor: &mut dyn Monitor,
        run: &mut RunMethod<'_, T, D, C>,
    ) -> Result<CgOutcome, LinalgError> {
        let (mut tolerance, mut before, mut stalls) = (self.config.tolerance, f64::INFINITY, 0);
        loop {
            let end = self.run(x, tolerance, monitor, run)?;
            let mut verdict = self.judge(x, &end)?;
            // A later run may be asked for less than rounding allows, and bring what is needed all the same.
            let is_later = before.is_finite();
            let has_ended_well = match end.stop {
                Stop::Converged => true,
                Stop::Stagnated => is_later || verdict.worst <= 1.0,
                _ => false,
            };
            if !has_ended_well {
                self.restore_best(x, &end, &mut verdict, run)?;
                return Ok(self.outcome(end.stop, verdict.r_norm));
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
        }
    }

    /// One run to a tolerance, with what is left of the limits.
    fn run(
        &mut self,
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
        let is_first = self.start.is_none() && self.residuals.is_empty();
        let end = run(x, self.system, Run { config, b_norm: self.b_norm, monitor: &mut monitor })?;
        let relative = end.history.r_dot_r.iter().map(|r_dot_r| r_dot_r.sqrt() / self.b_norm);
        // A later run begins with the residual that the one before has ended with.
        self.residuals.extend(relative.skip(usize::from(!self.residuals.is_empty())));
        if is_first {
            self.of_b = end.preconditioned.map(|[start, _]| start);
        }
        let ritz = smallest_ritz_value(&end.history.steps);
        self.smallest_ritz = [self.smallest_ritz, ritz].into_iter().flatten().reduce(f64::min);
        Ok(end)
    }

    fn judge(&mut self, x: &Buffer<T, D>, end: &RunEnd) -> Result<Verdict, LinalgError> {
        let System { a, b, comm, .. } = self.system;
        let n = b.len();
        let mut r = Buffer::zeros(b.device(), n)?;
        residual(&mut r, a, x, b)?;
        let r_norm = norm(&r, comm)?;
        let tolerance = self.config.tolerance;
        let of_residual = r_norm / (RESIDUAL_SLACK * tolerance * self.b_norm);
        let recurred = end.history.r_dot_r.last().map_or(f64::INFINITY, |r_dot_r| r_dot_r.sqrt());
        let is_rounded = r_norm > RESIDUAL_SLACK * recurred.max(tolerance * self.b_norm);
        let known = end.preconditioned.map(|[_, last]| last).filter(|_| !is_rounded);
        let mut workspace =
            Buffer::zeros(b.device(), if known.is_some() && self.of_b.is_some() { 0 } else { n })?;
        let of_b = match self.of_b {
            Some(size) => size,
            None => self.size_of_b(&mut workspace)?,
        };
        let size = match known {
            Some(size) => size,
            None => self.size(&r, &mut workspace)?,
        };
        let is_reduced = is_rounded && !self.is_diagonal();
        let rest = if is_reduced { Some(unexplained(&r, x, self.system)?) } else { None };
        let of_rest = match &rest {
            Some(rest) => self.size(rest, &mut workspace)?,
            None => size,
        };
        drop(workspace);
        self.energy_norm = (dot(x, b, comm)? - dot(x, &r, comm)?).max(0.0).sqrt();
        let by_diagonal = self.by_diagonal(rest.as_ref().unwrap_or(&r))?;
        let of_preconditioned = of_rest.over(of_b).max(by_diagonal) / (PRECONDITIONED_SLACK * tolerance);
        drop(rest);
        self.energy_error = self.bound(end, (&mut r, r_norm), size, is_rounded)?;
        let allowed = ENERGY_SLACK[usize::from(is_rounded)] * tolerance * self.energy_norm;
        let of_energy = self.energy_error.map(|error| error / allowed);
        let others = of_preconditioned.max(of_energy.unwrap_or(0.0));
        let passes_by_energy = is_rounded && of_energy.is_some() && others <= 1.0;
        let worst = if passes_by_energy { others } else { others.max(of_residual) };
        Ok(Verdict { r_norm, worst: if r_norm.is_finite() { worst } else { f64::INFINITY } })
    }

    /// The bound of the energy error, from the steps of the run or of a few on the residual equation; r is used up.
    fn bound(
        &self,
        end: &RunEnd,
        (r, r_norm): (&mut Buffer<T, D>, f64),
        size: Size,
        is_rounded: bool,
    ) -> Result<Option<f64>, LinalgError> {
        let kind = usize::from(!self.is_diagonal());
        let steps = &end.history.steps;
        if steps.len() < MIN_STEPS[kind] {
            return self.probe(r, PROBE[kind], is_rounded);
        }
        let rho = if self.diagonal.is_none() { size.rho } else { r_norm * r_norm };
        Ok(self.smallest_ritz.map(|ritz| match is_rounded {
            true => (rho / ritz).sqrt(),
            false => energy_error(steps, rho, ritz),
        }))
    }

    /// Takes steps of conjugate gradients on $A e = r$: what they find of the energy of e, and the bound of the rest.
    ///
    /// Where r is no more than rounding, its direction says nothing: the bound is that of any residual of its size.
    fn probe(
        &self,
        r: &mut Buffer<T, D>,
        n_steps: usize,
        is_rounded: bool,
    ) -> Result<Option<f64>, LinalgError> {
        let System { a, b, comm, .. } = self.system;
        let (device, n) = (b.device(), b.len());
        let (mut z, mut q) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
        let mut rho = self.size(r, &mut z)?.rho;
        let first = rho;
        let mut p = copy(&z)?;
        let mut steps = Vec::new();
        while steps.len() < n_steps && rho > PROBED * first {
            a.apply(&mut q, &p)?;
            let alpha = rho / dot(&p, &q, comm)?;
            if !(alpha > 0.0 && alpha.is_finite()) {
                break;
            }
            steps.push(CgStep { rho, alpha });
            device.axpby(r, T::from_f64(-alpha), &q, T::ONE)?;
            let next = self.size(r, &mut z)?.rho;
            device.axpby(&mut p, T::ONE, &z, T::from_f64(next / rho))?;
            rho = next;
        }
        // A component along the null space of a singular matrix that rounding leaves is no error.
        while smallest_ritz_value(&steps).is_some_and(|ritz| ritz < SINGULAR * largest_of(&steps)) {
            rho = steps.pop().map_or(rho, |step| step.rho);
        }
        // The values of a run without preconditioner are not those of the diagonal, which the probe has in its place.
        let of_run = self.smallest_ritz.filter(|_| self.diagonal.is_none());
        let ritz = [of_run, smallest_ritz_value(&steps)].into_iter().flatten().reduce(f64::min);
        let found: f64 = steps.iter().map(|step| step.alpha * step.rho).sum();
        Ok(ritz.map(|ritz| match is_rounded {
            true => ROUNDED * (first / ritz).sqrt(),
            false => found.sqrt().hypot(energy_error(&steps, rho.max(0.0), ritz)),
        }))
    }

    /// The size of the right side; where the preconditioner turns out to be the identity, as the diagonal of the operator
    /// sees it, if the operator tells.
    fn size_of_b(&mut self, workspace: &mut Buffer<T, D>) -> Result<Size, LinalgError> {
        let b = self.system.b;
        let mut size = self.size(b, workspace)?;
        if size.z_norm == self.b_norm && self.system.m.diagonal().is_some() {
            self.diagonal = self.inverse_diagonal()?;
            size = self.size(b, workspace)?;
        }
        self.of_b = Some(size);
        Ok(size)
    }

    fn is_diagonal(&self) -> bool {
        self.system.m.shared_diagonal().is_some()
    }

    /// The residual over the right side as the diagonal of the operator sees them, where the preconditioner is another and the
    /// operator tells: levels in single precision do not see all that a row can hide.
    fn by_diagonal(&self, r: &Buffer<T, D>) -> Result<f64, LinalgError> {
        if self.is_diagonal() {
            return Ok(0.0);
        }
        let Some(diagonal) = self.inverse_diagonal()? else { return Ok(0.0) };
        let System { b, comm, .. } = self.system;
        let mut z = Buffer::zeros(b.device(), b.len())?;
        let [of_r, of_b] = [r, b].map(|v| -> Result<Size, LinalgError> {
            v.device().scale_by(&mut z, &diagonal, v)?;
            Ok(Size { rho: dot(v, &z, comm)?, z_norm: norm(&z, comm)? })
        });
        Ok(of_r?.over(of_b?))
    }

    /// Returns the reciprocals of the diagonal of the operator, where it gives them and they are positive.
    fn inverse_diagonal(&self) -> Result<Option<Buffer<T, D>>, LinalgError> {
        match self.system.a.inverse_diagonal() {
            Err(LinalgError::Diagonal { .. }) => Ok(None),
            found => found,
        }
    }

    fn size(&self, r: &Buffer<T, D>, z: &mut Buffer<T, D>) -> Result<Size, LinalgError> {
        let System { m, comm, .. } = self.system;
        match &self.diagonal {
            Some(diagonal) => r.device().scale_by(z, diagonal, r)?,
            None => m.apply(z, r)?,
        }
        Ok(Size { rho: dot(r, z, comm)?, z_norm: norm(z, comm)? })
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
        };
        run(x, self.system, Run { config, b_norm: self.b_norm, monitor: &mut () })?;
        let System { a, b, comm, .. } = self.system;
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
        Ok(())
    }

    fn back_to_start(&self, x: &mut Buffer<T, D>) -> Result<(), LinalgError> {
        let device = self.system.b.device();
        match &self.start {
            Some(start) => device.copy(x, start),
            None => device.fill(x, T::ZERO),
        }
    }

    fn outcome(self, stop: Stop, r_norm: f64) -> CgOutcome {
        CgOutcome {
            stop,
            iterations: self.residuals.len().saturating_sub(1),
            relative_residual: self.relative_residual.or(self.residuals.last().copied()).unwrap_or(f64::NAN),
            true_relative_residual: r_norm / self.b_norm,
            residuals: self.residuals,
            energy_error: self.energy_error,
            energy_norm: self.energy_norm,
        }
    }
}

/// The largest pivot $1 / \alpha$ of the tridiagonal matrix.
fn largest_of(steps: &[CgStep]) -> f64 {
    steps.iter().map(|step| 1.0 / step.alpha).fold(0.0, f64::max)
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
