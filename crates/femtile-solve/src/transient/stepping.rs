//! How the time of a run is divided into steps, and the integration itself.

use std::sync::Arc;
use std::time::{Duration, Instant};

use femtile_device::Buffer;
use femtile_linalg::krylov::Stop as KrylovStop;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_time::implicit::{Checkpoint, Integrator, Outcome, Scheme, SemiDiscrete, Steps, Stop};

use super::watch::{Moment, Record, Watch};
use crate::ranks::GlobalUnknowns;
use crate::tensor::OperatorDevice;
use crate::{SolveError, Stage, Stages};

/// How an equation is advanced in time, and at which times it is recorded.
#[derive(Debug, Clone)]
pub struct TimeStepping {
    /// The scheme.
    pub scheme: Scheme,
    /// The lengths of the steps.
    pub steps: Steps,
    /// The time of the initial values.
    pub start: f64,
    /// The time that is reached.
    pub end: f64,
    /// The times at which the solution is recorded, ascending.
    pub frames: Vec<f64>,
    /// Whether frames and the end of a form have the rate of u, which fluxes take: at the end of a step the one with which the scheme
    /// satisfies the equation, between steps and with [`Scheme::CrankNicolson`] the slope of the parabola through the last values.
    pub has_rates: bool,
    /// The interval between checkpoints, and what identifies the problem in them.
    pub checkpoints: Option<(CheckpointInterval, [u8; 32])>,
    /// The state that the run continues from, in place of initial values.
    pub resume: Option<Arc<Checkpoint>>,
}

impl Default for TimeStepping {
    /// Returns 100 steps of BDF2 from 0 to 1.
    fn default() -> Self {
        Self {
            scheme: Scheme::Bdf2,
            steps: Steps::Fixed(100),
            start: 0.0,
            end: 1.0,
            frames: Vec::new(),
            has_rates: false,
            checkpoints: None,
            resume: None,
        }
    }
}

impl TimeStepping {
    /// Sets the times at which the solution is recorded.
    pub fn set_frames(&mut self, times: impl IntoIterator<Item = f64>) {
        self.frames = times.into_iter().collect();
        self.frames.sort_by(f64::total_cmp);
    }

    /// Integrates an equation from its initial values at the owned unknowns; returns the last moment. With several ranks `global`
    /// has the numbers of the unknowns, and the record is that of the first one. Collective.
    pub(crate) fn integrate<D: OperatorDevice, S: SemiDiscrete<D, Error = SolveError>>(
        &self,
        Beginning { initial, resume, time_limit }: Beginning<'_, D>,
        system: &mut S,
        (record, global): (&mut dyn Record, Option<&GlobalUnknowns<'_>>),
        stages: &mut Stages<'_>,
    ) -> Result<(Moment, Outcome), SolveError> {
        let scratch = Buffer::zeros(initial.device(), initial.len())?;
        let mut integrator = Integrator::new(self.scheme, self.steps, (self.start, self.end), initial)?;
        if let Some(checkpoint) = resume {
            integrator.restore(checkpoint)?;
        }
        stages.begin(Stage::Solve)?;
        let mut watch = Watch {
            record,
            progress: stages.progress(),
            global,
            has_rates: self.has_rates,
            frames: self.frames.iter().copied().enumerate().collect(),
            checkpoints: self.checkpoints,
            last_checkpoint: Instant::now(),
            span: (self.start, self.end),
            deadline: time_limit.map(|limit| (Instant::now(), limit)),
            scratch,
        };
        watch.begin(integrator.time(), integrator.values())?;
        let outcome = integrator.run(system, &mut watch)?;
        if let (Stop::SolverFailed, Some((_, fingerprint))) = (outcome.stop, self.checkpoints) {
            let state = integrator.checkpoint(fingerprint, system)?;
            watch.keep(state)?;
        }
        let rate = if self.has_rates { integrator.rate() } else { Vec::new() };
        Ok((Moment::of(integrator.values(), &rate)?, outcome))
    }

    /// Returns the shift of most steps, from the checkpoint on if there is one.
    pub(crate) fn first_shift(&self) -> f64 {
        self.resume.as_ref().map_or_else(|| self.initial_shift(), |state| self.shift_of(state.length))
    }

    /// Returns the shift of most steps, at the beginning of the run.
    pub(crate) fn initial_shift(&self) -> f64 {
        self.shift_of(match self.steps {
            Steps::Fixed(count) => (self.end - self.start) / count.max(1) as f64,
            Steps::Adaptive { first, shortest, longest, .. } => {
                first.unwrap_or(1e-3 * (self.end - self.start)).clamp(shortest, longest.max(shortest))
            }
        })
    }

    fn shift_of(&self, length: f64) -> f64 {
        match self.scheme {
            Scheme::ImplicitEuler => 1.0 / length,
            Scheme::Bdf2 => 1.0 / length + 1.0 / (length + length),
            Scheme::Sdirk2 => Scheme::sdirk2_shift(length),
            Scheme::CrankNicolson => 2.0 / length,
        }
    }
}

/// The interval between checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckpointInterval {
    /// A number of steps.
    Steps(usize),
    /// A wall-clock time.
    Time(Duration),
}

impl CheckpointInterval {
    /// Returns two numbers that identify the interval.
    pub fn to_bits(self) -> [u64; 2] {
        match self {
            Self::Steps(every) => [1, every as u64],
            Self::Time(every) => [2, every.as_nanos() as u64],
        }
    }
}

/// Where an integration begins.
pub(crate) struct Beginning<'a, D: OperatorDevice> {
    /// The values at the owned unknowns.
    pub initial: Buffer<f64, D>,
    /// The checkpoint that the run goes on from, if there is one.
    pub resume: Option<&'a Checkpoint>,
    pub time_limit: Option<Duration>,
}

/// Returns the run as the outcome of a linear solver, for reports and exit codes.
pub(crate) fn linear_outcome(outcome: &Outcome) -> CgOutcome {
    let stop = match outcome.stop {
        Stop::Finished => KrylovStop::Converged,
        Stop::Interrupted => KrylovStop::Interrupted,
        Stop::TimeLimit => KrylovStop::TimeLimit,
        Stop::SolverFailed | Stop::StepTooShort => KrylovStop::Diverged,
    };
    CgOutcome {
        stop,
        iterations: outcome.iterations,
        relative_residual: f64::NAN,
        true_relative_residual: f64::NAN,
        residuals: Vec::new(),
        energy_error: None,
        energy_norm: f64::NAN,
        failed_test: None,
    }
}

/// Consecutive steps without an iteration after which a warning is given.
const IDLE: usize = 10;

/// Returns the warnings about a run.
pub(crate) fn warnings_of(outcome: &Outcome) -> Vec<String> {
    let Outcome { stop, steps, time, restarts, idle, .. } = outcome;
    let mut warnings = Vec::new();
    if *idle >= IDLE {
        warnings.push(format!(
            "{idle} steps in a row took no iteration: u did not change, or as its last values predict, up to the tolerance of \
             the solver"
        ));
    }
    let reason = match stop {
        Stop::Finished => {
            if *restarts > 0 {
                warnings.push(format!(
                    "the data have {restarts} kinks or jumps in time, at which the steps restarted with a short one"
                ));
            }
            return warnings;
        }
        Stop::Interrupted => "was interrupted by the user",
        Stop::TimeLimit => "reached its time limit",
        Stop::SolverFailed => {
            "ended because a solve did not converge: take shorter steps or another preconditioner"
        }
        Stop::StepTooShort => "ended because its tolerance asks for steps below the shortest one",
    };
    warnings.push(format!("the run {reason} (time {time} after {steps} steps)"));
    warnings
}
