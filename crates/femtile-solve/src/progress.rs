//! The stages of a run, their times, and reports of progress.

use std::sync::Mutex;
use std::time::Instant;

use crate::SolveError;

/// The stages of a run, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Reading or making the mesh.
    Read,
    /// Checking, repairing and refining it.
    Check,
    /// Boundary, coefficients, functionals.
    Space,
    /// Matrix and right side.
    Assemble,
    /// The preconditioner.
    Setup,
    /// The iterations.
    Solve,
    /// Functionals and files.
    Write,
}

impl Stage {
    /// Returns the text shown during the stage.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Read => "reading the mesh",
            Self::Check => "checking the mesh",
            Self::Space => "preparing the form",
            Self::Assemble => "assembling",
            Self::Setup => "preparing the solver",
            Self::Solve => "solving",
            Self::Write => "writing results",
        }
    }
}

/// Receives the progress of a run, and may stop it.
pub trait Progress: Send {
    /// A stage begins; the one before is over.
    fn begin(&mut self, _stage: Stage) {}

    /// This fraction of the stage is done.
    fn fraction(&mut self, _fraction: f64) {}

    /// The solve has done this many iterations.
    fn iteration(&mut self, _iteration: usize, _relative_residual: f64, _tolerance: f64) {}

    /// A run in time has reached this time of those up to `end`.
    fn time(&mut self, _time: f64, _end: f64) {}

    /// The linear system has been solved, or its solve has ended otherwise; results are written next.
    fn solved(&mut self, _system: &dyn SolvedSystem) {}

    /// Results are written; what follows frees the memory of the run.
    fn finished(&mut self) {}

    /// Returns whether to stop: the solve at its next iteration, with its iterate; other stages before anything is written.
    fn is_interrupted(&self) -> bool {
        false
    }
}

/// A linear system $A x = b$ after its solve, on any device, for independent checks.
///
/// Rows are those of the solver, with unit rows for Dirichlet values.
pub trait SolvedSystem {
    /// The right side $b$.
    ///
    /// # Errors
    /// Errors of the device; also in the other functions.
    fn right_side(&self) -> Result<Vec<f64>, SolveError>;

    /// The solution $x$ that was found.
    ///
    /// # Errors
    /// As above.
    fn solution(&self) -> Result<Vec<f64>, SolveError>;

    /// $A v$.
    ///
    /// # Errors
    /// As above, and if `v` has another length.
    fn apply(&self, v: &[f64]) -> Result<Vec<f64>, SolveError>;
}

/// Receives nothing and never asks for a stop.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {}

/// Seconds spent in each stage.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timings {
    /// Reading or making the mesh.
    pub read: f64,
    /// Checking and refining it.
    pub check: f64,
    /// Boundary, coefficients, functionals.
    pub space: f64,
    /// Matrix and right side.
    pub assemble: f64,
    /// The preconditioner.
    pub setup: f64,
    /// The iterations.
    pub solve: f64,
    /// Functionals and files.
    pub write: f64,
}

impl Timings {
    fn of(&mut self, stage: Stage) -> &mut f64 {
        match stage {
            Stage::Read => &mut self.read,
            Stage::Check => &mut self.check,
            Stage::Space => &mut self.space,
            Stage::Assemble => &mut self.assemble,
            Stage::Setup => &mut self.setup,
            Stage::Solve => &mut self.solve,
            Stage::Write => &mut self.write,
        }
    }
}

/// Times the stages of a run and passes them on to a [`Progress`].
pub struct Stages<'a> {
    progress: &'a mut dyn Progress,
    stage: Option<Stage>,
    begun: Instant,
    timings: Timings,
    /// Whether the user had requested a stop before results were written.
    stopped: bool,
}

impl<'a> Stages<'a> {
    /// Begins before the first stage.
    pub fn new(progress: &'a mut dyn Progress) -> Self {
        Self { progress, stage: None, begun: Instant::now(), timings: Timings::default(), stopped: false }
    }

    /// Ends the stage before and begins another.
    ///
    /// # Errors
    /// [`SolveError::Interrupted`] if the user has asked for a stop, unless results are to be written.
    pub fn begin(&mut self, stage: Stage) -> Result<(), SolveError> {
        match stage {
            // A solve that was stopped leaves something to write.
            Stage::Write => self.stopped = self.progress.is_interrupted(),
            _ => self.go_on()?,
        }
        self.timings = self.timings();
        (self.begun, self.stage) = (Instant::now(), Some(stage));
        self.progress.begin(stage);
        Ok(())
    }

    /// Checks whether the user requests a stop.
    ///
    /// # Errors
    /// [`SolveError::Interrupted`] with the stage.
    pub fn go_on(&self) -> Result<(), SolveError> {
        match self.progress.is_interrupted() && !self.stopped {
            true => Err(SolveError::Interrupted { stage: self.stage.unwrap_or(Stage::Read) }),
            false => Ok(()),
        }
    }

    /// Returns the seconds of each stage, of the present one those until now.
    pub fn timings(&self) -> Timings {
        let mut timings = self.timings;
        if let Some(stage) = self.stage {
            *timings.of(stage) += self.begun.elapsed().as_secs_f64();
        }
        timings
    }

    /// Says that the last stage is over.
    pub fn finish(&mut self) {
        self.timings = self.timings();
        self.stage = None;
        self.progress.finished();
    }

    /// Returns the receiver of progress.
    pub fn progress(&mut self) -> &mut dyn Progress {
        self.progress
    }

    /// Runs work that reports the fraction of the stage that is done, from any thread.
    pub fn with_fractions<R>(&mut self, work: impl FnOnce(&(dyn Fn(f64) + Sync)) -> R) -> R {
        let shared = Mutex::new(&mut *self.progress);
        work(&|fraction| {
            if let Ok(mut progress) = shared.try_lock() {
                progress.fraction(fraction);
            }
        })
    }

    /// Runs work that checks, from any thread, whether to stop.
    pub fn interruptible<R>(&mut self, work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> R) -> R {
        let shared = Mutex::new(&mut *self.progress);
        work(&|| shared.try_lock().is_ok_and(|progress| progress.is_interrupted()))
    }
}
