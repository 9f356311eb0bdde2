//! Stops that all ranks make in the same iteration.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use femtile_comm::Comm;
use femtile_linalg::LinalgError;
use femtile_linalg::krylov::{Monitor, Stop};

use crate::{Progress, SolverConfig};

/// Iterations from one question of all ranks to the next, at least.
const EVERY: usize = 8;

/// Passes iterations on, and stops once a rank is asked to or the time of one is over: in the same iteration on all of them, as
/// a rank that iterates alone would wait for ever.
pub(super) struct Agreed<'a> {
    comm: &'a Comm,
    progress: &'a mut dyn Progress,
    tolerance: f64,
    begun: Instant,
    limit: Option<Duration>,
    /// The iteration of the last question.
    last_asked: Option<usize>,
    failed: Result<(), LinalgError>,
}

impl<'a> Agreed<'a> {
    pub fn new(comm: &'a Comm, config: &SolverConfig, progress: &'a mut dyn Progress) -> Self {
        let (tolerance, limit) = (config.tolerance, config.time_limit);
        Self { comm, progress, tolerance, begun: Instant::now(), limit, last_asked: None, failed: Ok(()) }
    }

    /// The settings without the limit of time, which is kept here.
    pub fn without_time_limit(&self, config: &SolverConfig) -> SolverConfig {
        SolverConfig { time_limit: None, ..config.clone() }
    }

    /// Returns the error of the last question, if there was one.
    pub fn ended(self) -> Result<(), LinalgError> {
        self.failed
    }

    fn ask(&mut self) -> Result<ControlFlow<Stop>, LinalgError> {
        let is_over = self.limit.is_some_and(|limit| self.begun.elapsed() >= limit);
        Ok(match self.comm.any([self.progress.is_interrupted(), is_over])? {
            [true, _] => ControlFlow::Break(Stop::Interrupted),
            [_, true] => ControlFlow::Break(Stop::TimeLimit),
            _ => ControlFlow::Continue(()),
        })
    }
}

impl Monitor for Agreed<'_> {
    fn iteration(&mut self, iteration: usize, relative_residual: f64) -> ControlFlow<Stop> {
        self.progress.iteration(iteration, relative_residual, self.tolerance);
        // A method that starts again counts from zero.
        let is_early = |last: usize| (last..last + EVERY).contains(&iteration);
        if self.last_asked.is_some_and(is_early) {
            return ControlFlow::Continue(());
        }
        self.last_asked = Some(iteration);
        self.ask().unwrap_or_else(|error| {
            self.failed = Err(error);
            ControlFlow::Break(Stop::Interrupted)
        })
    }
}
