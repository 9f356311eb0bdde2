//! Time-dependent problems on any mesh: $c u_t = \nabla\cdot(\sigma\nabla u) - \lambda u + f$.
//!
//! [`Transient`] is the problem, `semidiscrete` its discretization in space on a device, `watch` reports each
//! step.
//!
//! M is the mass matrix with the capacity c. The matrices $K + a M$ of stages are combined from K and M on
//! one pattern (`Csr::combined`); a is called the shift. Matrix-free operators are those of the steady
//! problem with λ + a c. `preconditioning` decides how long a preconditioner is kept. Operators and
//! preconditioners follow from the shift and a few values, which checkpoints contain.

mod data;
mod distributed;
mod distributed_equation;
mod nonlinear;
mod operators;
mod preconditioning;
mod rank_terms;
mod run;
mod semidiscrete;
mod shifted_solver;
mod source;
mod stage_solver;
mod stepping;
mod watch;

use std::sync::Arc;

use femtile_device::Cpu;
use femtile_time::implicit::{Checkpoint, Outcome, Scheme, Steps};

use crate::{
    Discretization, MassMatrix, Poisson, Progress, Silent, Solution, SolveError, SolverConfig, Stage, Stages,
    Value,
};
pub(crate) use data::nodal_values;
pub(crate) use stepping::{Beginning, linear_outcome, warnings_of};
pub use stepping::{CheckpointInterval, TimeStepping};
pub use watch::{Frame, Observer};
pub(crate) use watch::{Moment, Record};

/// The problem $c u_t = \nabla\cdot(\sigma\nabla u) - \lambda u + f$ on a mesh, with conditions on its boundary and an initial value.
///
/// The capacity c is 1 by default. All other values may depend on the time `t`; c, σ, λ and the source may
/// also depend on the solution `u`. λ may be negative (growth) if steps are shorter than c/|λ|.
///
/// ```
/// use femtile_mesh::generate::{SquareConfig, square};
/// use femtile_solve::{Poisson, SolverConfig, Transient};
/// use femtile_time::implicit::{Scheme, Steps};
///
/// let mesh = square(&SquareConfig { cells: [16, 16], ..SquareConfig::default() })?;
/// let problem = Poisson::new(&mesh).source("sin(t)").dirichlet("all", 0.0)?;
/// let solution = Transient::new(problem, "x*y").times(0.0, 1.0).steps(Steps::Fixed(50)).scheme(Scheme::Bdf2)
///     .solve(&SolverConfig::default())?;
/// println!("{} after {} steps", solution.at_end().max(), solution.outcome().steps);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Transient<'m> {
    problem: Poisson<'m>,
    capacity: Value,
    initial: Value,
    mass: MassMatrix,
    stepping: TimeStepping,
}

impl<'m> Transient<'m> {
    /// Takes the steady problem, whose values may depend on `t`, and the initial value of u. By default the
    /// time runs from 0 to 1 in 100 steps of BDF2.
    pub fn new(problem: Poisson<'m>, initial: impl Into<Value>) -> Self {
        Self {
            problem,
            capacity: Value::Number(1.0),
            initial: initial.into(),
            mass: MassMatrix::Consistent,
            stepping: TimeStepping::default(),
        }
    }

    /// Sets the capacity c > 0: a number, a formula in x, y, z and u, values by tag or a cell field. For heat
    /// conduction, c is ρ c_p, density times specific heat, and σ is the thermal conductivity.
    ///
    /// ```
    /// use femtile_mesh::generate::{SquareConfig, square};
    /// use femtile_solve::{Poisson, SolverConfig, Transient};
    ///
    /// // Steel that cools in air.
    /// let mesh = square(&SquareConfig { upper: [0.02, 0.02], ..SquareConfig::default() })?;
    /// let problem = Poisson::new(&mesh).sigma(45.0).robin("all", 25.0, 293.0)?;
    /// let cooled = Transient::new(problem, 900.0).capacity(7800.0 * 490.0).times(0.0, 600.0).solve(&SolverConfig::default())?;
    /// assert!(cooled.at_end().max() < 700.0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn capacity(mut self, capacity: impl Into<Value>) -> Self {
        self.capacity = capacity.into();
        self
    }

    /// Sets the start and end times.
    pub fn times(mut self, start: f64, end: f64) -> Self {
        (self.stepping.start, self.stepping.end) = (start, end);
        self
    }

    /// Sets the time integration scheme.
    pub fn scheme(mut self, scheme: Scheme) -> Self {
        self.stepping.scheme = scheme;
        self
    }

    /// Sets the step sizes.
    pub fn steps(mut self, steps: Steps) -> Self {
        self.stepping.steps = steps;
        self
    }

    /// Sets the mass matrix; lumping needs elements of degree 1.
    pub fn mass(mut self, mass: MassMatrix) -> Self {
        self.mass = mass;
        self
    }

    /// Sets the times at which [`Observer::frame`] receives the solution.
    pub fn frames(mut self, times: impl IntoIterator<Item = f64>) -> Self {
        self.stepping.set_frames(times);
        self
    }

    /// Makes [`Observer::checkpoint`] receive the state at intervals, and if a run is interrupted or out of
    /// time; `fingerprint` identifies the problem in it.
    pub fn checkpoints(mut self, interval: CheckpointInterval, fingerprint: [u8; 32]) -> Self {
        self.stepping.checkpoints = Some((interval, fingerprint));
        self
    }

    /// Continues from a checkpoint instead of the initial value.
    pub fn resume(mut self, checkpoint: Checkpoint) -> Self {
        self.stepping.resume = Some(Arc::new(checkpoint));
        self
    }

    /// Sets how the time is divided, in place of what was set before.
    pub fn stepping(mut self, stepping: TimeStepping) -> Self {
        self.stepping = stepping;
        self
    }

    /// Solves the problem.
    ///
    /// # Errors
    /// [`SolveError`]; a run that stops before the end time is an outcome, not an error.
    pub fn solve(&self, config: &SolverConfig) -> Result<TransientSolution<'m>, SolveError> {
        self.solve_with(config, &mut (), &mut Silent)
    }

    /// Solves the problem and reports steps, frames and progress.
    ///
    /// # Errors
    /// As [`Transient::solve`]; [`SolveError::Interrupted`] if interrupted before the first step; errors that
    /// the observer returns.
    pub fn solve_with(
        &self,
        config: &SolverConfig,
        observer: &mut dyn Observer,
        progress: &mut dyn Progress,
    ) -> Result<TransientSolution<'m>, SolveError> {
        config.check()?;
        let opened = if config.ranks.n() > 1 { None } else { config.device.open()? };
        self.problem.check_memory(config, opened.is_some())?;
        let cpu = Cpu::new(config.threads)?;
        cpu.install(|| {
            let mut stages = Stages::new(progress);
            stages.begin(Stage::Space)?;
            let problem = self.discretize()?;
            self.run(problem, (&cpu, opened), config, observer, &mut stages)
        })
    }

    /// Resolves coefficients and conditions on the mesh and makes the finite-element space.
    ///
    /// # Errors
    /// As [`Poisson::discretize`].
    pub fn discretize(&self) -> Result<Discretization<'m>, SolveError> {
        self.problem.discretize_in_time(&self.capacity)
    }
}

/// The result of a time-dependent run.
#[derive(Debug)]
#[must_use]
pub struct TransientSolution<'m> {
    solution: Solution<'m>,
    whole: Option<Solution<'m>>,
    outcome: Outcome,
}

impl<'m> TransientSolution<'m> {
    /// Returns the solution at the last time of the run.
    pub fn at_end(&self) -> &Solution<'m> {
        &self.solution
    }

    /// Returns the solution at the last time of the run.
    pub fn into_end(self) -> Solution<'m> {
        self.solution
    }

    /// Returns the solution at the last time of the run. After [`Transient::run_on_parts`] it is that on the
    /// rank's own cells; the first rank may also have the solution on the whole mesh.
    pub fn into_both(self) -> (Solution<'m>, Option<Solution<'m>>) {
        (self.solution, self.whole)
    }

    /// Returns the outcome of the run: steps, iterations and the reason of its end.
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

/// Observes nothing.
impl Observer for () {}
