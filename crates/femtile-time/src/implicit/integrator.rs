//! The loop over steps.

use std::ops::ControlFlow;

use femtile_device::Buffer;
use femtile_linalg::LinalgError;
use femtile_linalg::vector::VectorKernels;

use super::control::{Controller, JUMP, KINK_SHARE, MOST_RESTARTS, SETTLED, share_of_step};
use super::history::History;
use super::{Checkpoint, Scheme, SemiDiscrete, Steps, Tolerance};
use crate::TimeError;

/// The most times that a step of fixed length is halved if its solve does not converge.
const MOST_HALVINGS: usize = 6;

/// The reason for the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// The end of time is reached.
    Finished,
    /// The user has asked for it.
    Interrupted,
    /// The time allowed is over.
    TimeLimit,
    /// A linear or nonlinear solve did not converge, with the shortest step too.
    SolverFailed,
    /// The error estimate asks for a step below the shortest one.
    StepTooShort,
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// The reason for its end.
    pub stop: Stop,
    /// Steps done, those before a checkpoint included.
    pub steps: usize,
    /// Steps rejected by the error estimate, or because a solve did not converge.
    pub rejected: usize,
    /// Restarts of the extrapolation, at kinks and jumps in time of the data.
    pub restarts: usize,
    /// Iterations of linear solvers.
    pub iterations: usize,
    /// The largest number of consecutive steps, of those after a checkpoint, whose solves needed no
    /// iteration.
    pub idle: usize,
    /// The time that was reached.
    pub time: f64,
}

/// Receives each accepted step, and may end the run.
pub trait Monitor<D: VectorKernels<f64>> {
    /// The error of writing results.
    type Error;

    /// A step was accepted.
    ///
    /// # Errors
    /// An error ends the run at once.
    fn step(&mut self, reached: &Reached<'_, D>) -> Result<ControlFlow<Stop>, Self::Error>;
}

/// Receives nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl<D: VectorKernels<f64>> Monitor<D> for Silent {
    type Error = LinalgError;

    fn step(&mut self, _: &Reached<'_, D>) -> Result<ControlFlow<Stop>, LinalgError> {
        Ok(ControlFlow::Continue(()))
    }
}

/// The state of a run after a step.
pub struct Reached<'a, D: VectorKernels<f64>> {
    state: &'a State<D>,
    /// The last vector of a stage before the last one.
    stage: &'a Buffer<f64, D>,
    memory: &'a dyn Fn() -> Vec<f64>,
}

impl<D: VectorKernels<f64>> Reached<'_, D> {
    /// Returns the steps done.
    pub fn steps(&self) -> usize {
        self.state.steps
    }

    /// Returns the time.
    pub fn time(&self) -> f64 {
        self.state.history.time(0)
    }

    /// Returns the solution.
    pub fn values(&self) -> &Buffer<f64, D> {
        self.state.history.value(0)
    }

    /// Writes the solution at a time within the last steps into `out`, by the polynomial of degree two through the last values.
    ///
    /// # Errors
    /// [`LinalgError::Length`].
    pub fn values_at(&self, time: f64, out: &mut Buffer<f64, D>) -> Result<(), LinalgError> {
        self.state.history.polynomial(time, 2, out)
    }

    /// Returns the rate of u at a time within the last steps; see [`Integrator::rate`].
    pub fn rate_at(&self, time: f64) -> Vec<(f64, &Buffer<f64, D>)> {
        self.state.history.slope(time, 2)
    }

    /// Returns the rate of u at the time; see [`Integrator::rate`].
    pub fn rate(&self) -> Vec<(f64, &Buffer<f64, D>)> {
        self.state.rate(self.stage)
    }

    /// Returns the state of the run on the host.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn checkpoint(&self, fingerprint: [u8; 32]) -> Result<Checkpoint, LinalgError> {
        let state = self.state;
        let value = |age| Ok((state.history.time(age), state.history.value(age).to_host()?));
        Ok(Checkpoint {
            fingerprint,
            step: state.steps as u64,
            rejected: state.rejected as u64,
            restarts: state.restarts as u64,
            iterations: state.iterations as u64,
            length: state.length,
            last_error: state.last_error,
            largest_norm: state.largest_norm,
            memory: (self.memory)(),
            history: (0..state.history.len()).map(value).collect::<Result<_, LinalgError>>()?,
        })
    }
}

pub(super) struct State<D: VectorKernels<f64>> {
    pub history: History<D>,
    steps: usize,
    rejected: usize,
    restarts: usize,
    pub iterations: usize,
    /// Steps in a row whose solves took no iteration: now, and at most.
    pub idle: [usize; 2],
    /// The rate in the stage that gave the newest value; none without one.
    pub last_rate: Option<StageRate>,
    /// The length of the next step.
    length: f64,
    last_error: f64,
    largest_norm: f64,
}

/// The rate $a u - \sum_i f_i u_i$ of a stage.
#[derive(Debug, Clone, Copy)]
pub(super) struct StageRate {
    /// a.
    pub shift: f64,
    /// The factors of the values one and two steps ago.
    pub of_history: [f64; 2],
    /// The factor of the stage before.
    pub of_stage: f64,
}

impl<D: VectorKernels<f64>> State<D> {
    fn rate<'s>(&'s self, stage: &'s Buffer<f64, D>) -> Vec<(f64, &'s Buffer<f64, D>)> {
        let Some(StageRate { shift, of_history, of_stage }) = self.last_rate else {
            return self.history.slope(self.history.time(0), 2);
        };
        let mut terms = vec![(shift, self.history.value(0))];
        let of_history = of_history.into_iter().enumerate().filter(|(_, factor)| *factor != 0.0);
        terms.extend(of_history.map(|(age, factor)| (-factor, self.history.value(age + 1))));
        if of_stage != 0.0 {
            terms.push((-of_stage, stage));
        }
        terms
    }
}

/// Advances a semidiscrete equation in time.
///
/// # Cost
/// A step of one stage needs one solve, and reads or writes some ten vectors; SDIRK2 needs two solves. Six
/// vectors are kept.
/// # Source
/// `[alexander1977]` for SDIRK2, `[soderlind2003]` for the control of steps.
pub struct Integrator<D: VectorKernels<f64>> {
    pub(super) device: D,
    pub(super) scheme: Scheme,
    steps: Steps,
    start: f64,
    end: f64,
    pub(super) state: State<D>,
    /// The solution of the step that is computed.
    pub(super) next: Buffer<f64, D>,
    /// Terms of earlier values, errors.
    pub(super) terms: Buffer<f64, D>,
    /// Stages, defects.
    pub(super) other: Buffer<f64, D>,
}

impl<D: VectorKernels<f64>> Integrator<D> {
    /// Prepares a run from `u` at `start` to `end`.
    ///
    /// # Errors
    /// [`TimeError::Setting`] for times, steps or tolerances out of range; errors of the device.
    pub fn new(
        scheme: Scheme,
        steps: Steps,
        (start, end): (f64, f64),
        u: Buffer<f64, D>,
    ) -> Result<Self, TimeError> {
        check(steps, start, end)?;
        let length = match steps {
            Steps::Fixed(count) => (end - start) / count as f64,
            Steps::Adaptive { first, shortest, longest, .. } => {
                first.unwrap_or(1e-3 * (end - start)).clamp(shortest, longest).min(0.2 * (end - start))
            }
        };
        let (device, n) = (u.device().clone(), u.len());
        let zeros = || Buffer::zeros(&device, n);
        let (next, terms, other) = (zeros()?, zeros()?, zeros()?);
        let state = State {
            history: History::new(start, u),
            steps: 0,
            rejected: 0,
            restarts: 0,
            iterations: 0,
            idle: [0; 2],
            last_rate: None,
            length,
            last_error: 1.0,
            largest_norm: 0.0,
        };
        Ok(Self { device, scheme, steps, start, end, state, next, terms, other })
    }

    /// Restores the state of a checkpoint.
    ///
    /// # Errors
    /// [`TimeError::Setting`] if fixed steps have another length, or the checkpoint lies beyond the end;
    /// errors of the device.
    pub fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), TimeError> {
        let time = checkpoint.history.first().map_or(self.start, |(time, _)| *time);
        if time > self.end {
            let message = format!("{} lies before the time {time} of the checkpoint", self.end);
            return Err(TimeError::Setting { field: "end", message });
        }
        if let Some((_, u)) = checkpoint.history.iter().find(|(_, u)| u.len() != self.next.len()) {
            let (found, expected) = (u.len(), self.next.len());
            return Err(LinalgError::Length { field: "checkpoint", expected, found }.into());
        }
        let length = self.state.length;
        if matches!(self.steps, Steps::Fixed(_)) && (checkpoint.length - length).abs() > 1e-9 * length {
            let message =
                format!("steps have the length {length}, and those of the checkpoint {}", checkpoint.length);
            return Err(TimeError::Setting { field: "steps", message });
        }
        let Some(((newest, u), older)) = checkpoint.history.split_first() else { return Ok(()) };
        let mut history = History::new(*newest, Buffer::from_host(&self.device, u)?);
        for (time, u) in older {
            history.push_older(*time, Buffer::from_host(&self.device, u)?);
        }
        self.state = State {
            history,
            steps: checkpoint.step as usize,
            rejected: checkpoint.rejected as usize,
            restarts: checkpoint.restarts as usize,
            iterations: checkpoint.iterations as usize,
            idle: [0; 2],
            last_rate: None,
            length: checkpoint.length,
            last_error: checkpoint.last_error,
            largest_norm: checkpoint.largest_norm,
        };
        Ok(())
    }

    /// Returns the solution.
    pub fn values(&self) -> &Buffer<f64, D> {
        self.state.history.value(0)
    }

    /// Returns the time that was reached.
    pub fn time(&self) -> f64 {
        self.state.history.time(0)
    }

    /// Returns the rate of u at the time that was reached, as functions with their factors: that with which the last stage satisfies the
    /// equation. With [`Scheme::CrankNicolson`], at the time of a checkpoint and between steps it is the slope of the parabola through the
    /// last values; empty at the initial time.
    pub fn rate(&self) -> Vec<(f64, &Buffer<f64, D>)> {
        self.state.rate(&self.other)
    }

    /// Returns the state of the run on the host.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn checkpoint<S: SemiDiscrete<D>>(
        &self,
        fingerprint: [u8; 32],
        system: &S,
    ) -> Result<Checkpoint, LinalgError> {
        let stage = &self.other;
        Reached { state: &self.state, stage, memory: &|| system.memory() }.checkpoint(fingerprint)
    }

    /// Advances to the end, or until the monitor or a failure ends the run.
    ///
    /// # Errors
    /// Errors of the system and the monitor.
    pub fn run<S, M>(&mut self, system: &mut S, monitor: &mut M) -> Result<Outcome, S::Error>
    where
        S: SemiDiscrete<D>,
        M: Monitor<D>,
        S::Error: From<M::Error>,
    {
        let stop = match self.steps {
            Steps::Fixed(count) => self.run_fixed(count, system, monitor)?,
            Steps::Adaptive { tolerance, shortest, longest, .. } => {
                self.run_adaptive(tolerance, [shortest, longest], system, monitor)?
            }
        };
        let State { steps, rejected, restarts, iterations, idle: [_, idle], .. } = self.state;
        Ok(Outcome { stop, steps, rejected, restarts, iterations, idle, time: self.time() })
    }

    fn run_fixed<S, M>(&mut self, count: usize, system: &mut S, monitor: &mut M) -> Result<Stop, S::Error>
    where
        S: SemiDiscrete<D>,
        M: Monitor<D>,
        S::Error: From<M::Error>,
    {
        let length = self.state.length;
        while self.state.steps < count {
            let number = self.state.steps + 1;
            let time = if number == count { self.end } else { self.start + number as f64 * length };
            if !self.advance_in_parts(length, time, system)? {
                return Ok(Stop::SolverFailed);
            }
            self.state.steps += 1;
            if let ControlFlow::Break(stop) = self.pass_on(system, monitor)? {
                return Ok(stop);
            }
        }
        Ok(Stop::Finished)
    }

    /// Advances to `time` in one step, or in shorter steps if a solve does not converge; returns whether all
    /// converged.
    fn advance_in_parts<S: SemiDiscrete<D>>(
        &mut self,
        length: f64,
        time: f64,
        system: &mut S,
    ) -> Result<bool, S::Error> {
        let (mut part, mut halvings) = (length, 0);
        loop {
            let remaining = time - self.time();
            let (own, to) = if halvings == 0 && (remaining - length).abs() <= 1e-9 * length {
                (length, time)
            } else if part >= remaining * (1.0 - 1e-9) {
                (remaining, time)
            } else {
                (part, self.time() + part)
            };
            if self.advance(own, to, system)?.has_converged {
                self.state.history.push(to, &mut self.next)?;
                if to == time {
                    return Ok(true);
                }
                continue;
            }
            self.state.rejected += 1;
            part *= 0.5;
            halvings += 1;
            if halvings > MOST_HALVINGS {
                return Ok(false);
            }
        }
    }

    fn run_adaptive<S, M>(
        &mut self,
        tolerance: Tolerance,
        [shortest, longest]: [f64; 2],
        system: &mut S,
        monitor: &mut M,
    ) -> Result<Stop, S::Error>
    where
        S: SemiDiscrete<D>,
        M: Monitor<D>,
        S::Error: From<M::Error>,
    {
        let order = self.scheme.order();
        let norm = system.norm(self.values())?;
        self.state.largest_norm = self.state.largest_norm.max(norm);
        let mut controller = Controller::new(order, self.state.last_error);
        // Steps since the beginning or the last restart, and rejections of the present one.
        let (mut since_restart, mut in_a_row) = (self.state.steps, 0);
        while self.time() < self.end {
            let (length, time) = self.next_step();
            // The first steps have one length and are judged together, by the step that follows them.
            let is_judged = self.state.history.len() > order;
            let outcome = self.advance(length, time, system)?;
            let error = match (outcome.has_converged, is_judged) {
                (false, _) => f64::NAN,
                (true, false) => 0.0,
                (true, true) => self.error_of_step(length, time, tolerance, system)?,
            };
            let of_all = error * self.share(length, time);
            let is_small = in_a_row > 0 && of_all <= KINK_SHARE && since_restart > SETTLED;
            let is_restart = error > 1.0
                && error.is_finite()
                && system.may_have_kinks()
                && since_restart > order
                && self.state.restarts < MOST_RESTARTS
                && (is_small || in_a_row >= JUMP || length <= shortest);
            let is_start = since_restart <= order && of_all <= KINK_SHARE;
            if error <= 1.0 || is_restart || is_start {
                if error > 1.0 {
                    controller = Controller::new(order, 1.0);
                    // Errors in proportion to steps leave room for longer ones.
                    let growth = (0.5 * KINK_SHARE / of_all).clamp(1.0, 10.0);
                    self.state.length = (growth * length).min(longest);
                } else if is_judged {
                    match controller.accepted(error) {
                        1.0 => {}
                        factor => self.state.length = (factor * length).min(longest),
                    }
                    self.state.last_error = controller.last();
                }
                self.accept(time)?;
                (since_restart, in_a_row) = (since_restart + 1, 0);
                let is_last = time >= self.end;
                // Nothing follows the last step: it keeps its rate.
                if is_restart && !is_last {
                    self.state.history.keep_newest();
                    self.state.last_rate = None;
                    self.state.restarts += 1;
                    since_restart = 0;
                }
                let norm = system.norm(self.values())?;
                self.state.largest_norm = self.state.largest_norm.max(norm);
                if (is_last || is_judged && !is_restart)
                    && let ControlFlow::Break(stop) = self.pass_on(system, monitor)?
                {
                    return Ok(stop);
                }
                continue;
            }
            self.state.rejected += 1;
            self.state.last_rate = None;
            in_a_row += 1;
            let mut shorter = controller.rejected(error) * length;
            if since_restart <= order {
                self.state.history.keep_oldest();
                self.state.steps -= since_restart;
                since_restart = 0;
                shorter *= 0.3;
            }
            if length <= shortest {
                return Ok(if error.is_nan() { Stop::SolverFailed } else { Stop::StepTooShort });
            }
            self.state.length = shorter.max(shortest);
        }
        Ok(Stop::Finished)
    }

    /// Returns the length and the end of the next adaptive step; the last two steps of a run share what remains.
    fn next_step(&self) -> (f64, f64) {
        let (time, length) = (self.time(), self.state.length);
        let remaining = self.end - time;
        if length >= remaining * (1.0 - 1e-9) {
            (remaining, self.end)
        } else if 2.0 * length > remaining {
            (0.5 * remaining, time + 0.5 * remaining)
        } else {
            (length, time + length)
        }
    }

    /// Returns whether the lengths of steps follow from an error estimate.
    pub(super) fn is_adaptive(&self) -> bool {
        matches!(self.steps, Steps::Adaptive { .. })
    }

    /// Passes the state on to the monitor.
    fn pass_on<S, M>(&self, system: &S, monitor: &mut M) -> Result<ControlFlow<Stop>, S::Error>
    where
        S: SemiDiscrete<D>,
        M: Monitor<D>,
        S::Error: From<M::Error>,
    {
        let stage = &self.other;
        Ok(monitor.step(&Reached { state: &self.state, stage, memory: &|| system.memory() })?)
    }

    /// Makes the computed value the newest one.
    fn accept(&mut self, time: f64) -> Result<(), LinalgError> {
        self.state.history.push(time, &mut self.next)?;
        self.state.steps += 1;
        Ok(())
    }

    /// Estimates the local error of the step in `next`, as a share of the allowed error.
    fn error_of_step<S: SemiDiscrete<D>>(
        &mut self,
        length: f64,
        time: f64,
        tolerance: Tolerance,
        system: &mut S,
    ) -> Result<f64, S::Error> {
        let order = self.scheme.order();
        let lengths = self.state.history.lengths(time);
        let share = self.scheme.local_share(&lengths[..=order]);
        self.state.history.polynomial(time, order, &mut self.terms)?;
        self.device.axpby(&mut self.terms, share, &self.next, -share)?;
        system.clear_given(&mut self.terms)?;
        let error = system.norm(&self.terms)?;
        if error == 0.0 {
            return Ok(0.0);
        }
        let size = match self.state.largest_norm {
            0.0 => system.norm(&self.next)?,
            largest => largest,
        };
        let allowed = tolerance.absolute.max(tolerance.relative * size);
        Ok(error / (allowed * self.share(length, time)))
    }

    fn share(&self, length: f64, time: f64) -> f64 {
        share_of_step(length, time - self.start, self.end - self.start)
    }
}

fn check(steps: Steps, start: f64, end: f64) -> Result<(), TimeError> {
    let wrong = |field, message: String| Err(TimeError::Setting { field, message });
    if !(start.is_finite() && end.is_finite() && end > start) {
        return wrong("end", format!("{end} has to lie after the start, {start}"));
    }
    match steps {
        Steps::Fixed(0) => wrong("steps", "at least one step is needed".into()),
        Steps::Fixed(_) => Ok(()),
        Steps::Adaptive { tolerance, first, shortest, longest } => {
            let is_positive = |value: f64| value.is_finite() && value > 0.0;
            if !is_positive(tolerance.relative.max(tolerance.absolute)) {
                return wrong("tolerance", "a positive number is needed".into());
            }
            if !(is_positive(shortest) && longest >= shortest) {
                return wrong(
                    "shortest",
                    format!("{shortest} has to be positive and at most the longest step, {longest}"),
                );
            }
            match first {
                Some(first) if !is_positive(first) => {
                    wrong("first", format!("{first} is no length of a step"))
                }
                _ => Ok(()),
            }
        }
    }
}
