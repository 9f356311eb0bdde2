//! Stopping of all ranks in the same iteration.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use femtile_comm::Comm;
use femtile_linalg::LinalgError;
use femtile_linalg::krylov::{Monitor, Stop};

use crate::{Progress, SolverConfig};

/// Fewest iterations between two agreements of several ranks.
const EVERY: usize = 8;

/// Passes iterations on. Stops all ranks in the same iteration once one is interrupted or out of time;
/// otherwise the others would wait forever. On one rank the method checks the time itself.
pub(crate) struct Agreed<'a> {
    comm: &'a Comm,
    progress: &'a mut dyn Progress,
    tolerance: f64,
    begun: Instant,
    limit: Option<Duration>,
    /// Iterations between two agreements.
    every: usize,
    /// The iteration of the last agreement.
    last_asked: Option<usize>,
    failed: Result<(), LinalgError>,
}

impl<'a> Agreed<'a> {
    pub fn new(comm: &'a Comm, config: &SolverConfig, progress: &'a mut dyn Progress) -> Self {
        let (tolerance, is_alone) = (config.tolerance, comm.n_ranks() == 1);
        let limit = config.time_limit.filter(|_| !is_alone);
        let every = if is_alone { 1 } else { EVERY };
        let (begun, last_asked, failed) = (Instant::now(), None, Ok(()));
        Self { comm, progress, tolerance, begun, limit, every, last_asked, failed }
    }

    /// The same with an agreement in each iteration.
    pub fn in_each_iteration(self) -> Self {
        Self { every: 1, ..self }
    }

    /// The settings without the time limit if this monitor checks it.
    pub fn settings(&self, config: &SolverConfig) -> SolverConfig {
        SolverConfig { time_limit: config.time_limit.filter(|_| self.limit.is_none()), ..config.clone() }
    }

    /// Returns the communication error of the last agreement, if there was one.
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
        // A restarted method counts from zero.
        let is_early = |last: usize| (last..last + self.every).contains(&iteration);
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
