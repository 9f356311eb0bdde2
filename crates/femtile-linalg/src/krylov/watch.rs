//! Watches the residual of a run and decides when it ends.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Instant;

use super::acceptance::{RunEnd, Size};
use super::cg::{Block, CgHistory, CgProgress, KrylovConfig, Plan};
use super::{Monitor, Stop};
use crate::LinalgError;

/// A method whose iterations run on a device, while the host looks at copies of its numbers.
pub(super) trait Rounds {
    /// A copy of the numbers of a block that is under way.
    type Poll;

    /// Launches a block and a copy of its numbers, and waits for neither.
    fn launch(&mut self, block: Block) -> Result<Self::Poll, LinalgError>;

    /// Waits for a copy; appends the iterations that are new to `history`.
    fn read(&mut self, poll: Self::Poll, history: &mut CgHistory) -> Result<CgProgress, LinalgError>;
}

/// The residuals of a run, and the limits of its settings.
pub(super) struct Watch<'a> {
    config: &'a KrylovConfig,
    b_norm: f64,
    pub(super) history: CgHistory,
    n_seen: usize,
    best: f64,
    best_iteration: usize,
    begun: Instant,
}

impl<'a> Watch<'a> {
    /// Begins a run of a method; breaks if its initial residual, $r^\mathsf{T} r$, leaves nothing to do.
    pub(super) fn begin(
        config: &'a KrylovConfig,
        b_norm: f64,
        r_dot_r: f64,
        monitor: &mut dyn Monitor,
    ) -> (Self, ControlFlow<Stop>) {
        let mut watch = Self {
            config,
            b_norm,
            history: CgHistory::default(),
            n_seen: 0,
            best: f64::INFINITY,
            best_iteration: 0,
            begun: Instant::now(),
        };
        let stop = watch.start(r_dot_r, monitor);
        (watch, stop)
    }

    /// Runs blocks of iterations until one of them or the host ends the method; `polls` are those under way.
    pub(super) fn iterate<R: Rounds>(
        &mut self,
        (mut stop, monitor): (ControlFlow<Stop>, &mut dyn Monitor),
        (plan, mut polls): (&mut Plan, VecDeque<R::Poll>),
        rounds: &mut R,
    ) -> Result<ControlFlow<Stop>, LinalgError> {
        loop {
            while stop.is_continue()
                && let Some(block) = plan.next(polls.len())
            {
                polls.push_back(rounds.launch(block)?);
            }
            let Some(poll) = polls.pop_front() else { return Ok(stop) };
            let progress = rounds.read(poll, &mut self.history)?;
            stop = self.hear(progress, stop, monitor);
        }
    }

    /// Records the initial residual; breaks if the method need not start.
    fn start(&mut self, r_dot_r: f64, monitor: &mut dyn Monitor) -> ControlFlow<Stop> {
        self.history.r_dot_r.push(r_dot_r);
        if !r_dot_r.is_finite() {
            return ControlFlow::Break(Stop::Breakdown { quantity: "r·r", value: r_dot_r });
        }
        let stop = match self.relative(0) {
            relative if relative <= self.config.tolerance => Some(Stop::Converged),
            _ if self.config.max_iterations == 0 => Some(Stop::MaxIterations),
            _ => None,
        };
        self.look(CgProgress { iteration: 0, stop }, monitor)
    }

    /// Shows the residuals that are new in `history` to the monitor and says whether to continue.
    ///
    /// The order of precedence: convergence and breakdown, then the monitor, then the limits.
    fn look(&mut self, progress: CgProgress, monitor: &mut dyn Monitor) -> ControlFlow<Stop> {
        let mut asked = ControlFlow::Continue(());
        for iteration in self.n_seen..self.history.r_dot_r.len() {
            let relative = self.relative(iteration);
            if relative.is_nan() {
                continue;
            }
            if relative < self.best {
                (self.best, self.best_iteration) = (relative, iteration);
            }
            let answer = monitor.iteration(iteration, relative);
            asked = if asked.is_continue() { answer } else { asked };
        }
        self.n_seen = self.history.r_dot_r.len();
        match progress.stop {
            Some(stop @ (Stop::Converged | Stop::Breakdown { .. })) => return ControlFlow::Break(stop),
            stop => {
                asked?;
                stop.map_or(ControlFlow::Continue(()), ControlFlow::Break)?;
            }
        }
        self.limits(progress.iteration)
    }

    /// Looks after an iteration of a method whose steps run on the host, which has ended it if a reason is given.
    pub(super) fn end_if(&mut self, ended: Option<Stop>, monitor: &mut dyn Monitor) -> ControlFlow<Stop> {
        self.look(CgProgress { iteration: self.iteration(), stop: ended }, monitor)
    }

    /// Looks at a method that continues. One that has ended keeps its reason, unless a later iteration converged or broke
    /// down.
    pub(super) fn hear(
        &mut self,
        progress: CgProgress,
        stop: ControlFlow<Stop>,
        monitor: &mut dyn Monitor,
    ) -> ControlFlow<Stop> {
        match self.look(progress, monitor) {
            ControlFlow::Break(last @ (Stop::Converged | Stop::Breakdown { .. })) => ControlFlow::Break(last),
            last if stop.is_continue() => last,
            _ => stop,
        }
    }

    /// Returns why the last residual ends a method whose steps run on the host, if it does.
    pub(super) fn verdict(&self) -> Option<Stop> {
        if self.history.r_dot_r.last().is_some_and(|&r_dot_r| self.is_met(r_dot_r)) {
            Some(Stop::Converged)
        } else if self.iteration() >= self.config.max_iterations {
            Some(Stop::MaxIterations)
        } else {
            None
        }
    }

    /// Returns whether this r·r meets the tolerance.
    pub(super) fn is_met(&self, r_dot_r: f64) -> bool {
        r_dot_r.sqrt() / self.b_norm <= self.config.tolerance
    }

    /// Replaces the recurred r·r by a computed one, which also becomes the best value so far.
    pub(super) fn correct(&mut self, r_dot_r: f64) {
        if let Some(last) = self.history.r_dot_r.last_mut() {
            *last = r_dot_r;
        }
        (self.best, self.best_iteration) = (self.relative(self.iteration()), self.iteration());
    }

    /// Iterations seen.
    pub(super) fn iteration(&self) -> usize {
        self.history.r_dot_r.len().saturating_sub(1)
    }

    fn limits(&self, iteration: usize) -> ControlFlow<Stop> {
        let config = self.config;
        if config.time_limit.is_some_and(|limit| self.begun.elapsed() >= limit) {
            return ControlFlow::Break(Stop::TimeLimit);
        }
        if self.relative(iteration) > config.divergence_factor * self.best {
            return ControlFlow::Break(Stop::Diverged);
        }
        if iteration - self.best_iteration >= config.stagnation_window {
            return ControlFlow::Break(Stop::Stagnated);
        }
        ControlFlow::Continue(())
    }

    fn relative(&self, iteration: usize) -> f64 {
        self.history.r_dot_r.get(iteration).map_or(f64::NAN, |r_dot_r| r_dot_r.sqrt() / self.b_norm)
    }

    /// Returns the result of the run; `preconditioned` is the residual at its start and at its end, if
    /// computed.
    pub(super) fn end(self, stop: ControlFlow<Stop>, preconditioned: Option<[Size; 2]>) -> RunEnd {
        let stop = stop.break_value().unwrap_or(Stop::Converged);
        RunEnd { stop, history: self.history, preconditioned }
    }
}
