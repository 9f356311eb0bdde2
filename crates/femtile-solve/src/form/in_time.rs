//! Runs in time of problems of a form.

use femtile_comm::Comm;
use femtile_device::Cpu;
use femtile_device::cuda::Opening;
use femtile_form::{CellTerms, Components, Dependence, Equation, EquationText, Form, Unknown};
use femtile_linalg::LinearOperator;
use femtile_operator::{CpuOperator, DiscreteForm, State};
use femtile_space::LinearConstraints;
use femtile_time::implicit::{Checkpoint, Outcome, Scheme, Steps, Stop};

use super::approximation::Approximation;
use super::equation::FormEquation;
use super::evaluation::{Evaluate, on_host};
use super::kernel::Motions;
use super::on_ranks::Known;
use super::problem::of_equation;
use super::rank_form::{CellMatrix, RankForm};
use super::solution::{FormSolution, SolvedBy};
use super::solve::{config_for, takes_motions};
use super::stages::FormStages;
use super::{FormProblem, diffusion, stress};
use crate::device::{Choice, Chosen};
use crate::matrix::{check_preconditioner, resolved};
use crate::ranks::RankDevice;
use crate::system::SystemSummary;
use crate::transient::{Beginning, Record, linear_outcome, warnings_of};
use crate::{DeviceChoice, PreconditionerConfig, SolveError, SolverConfig, Stage, Stages, TimeStepping};

/// Receives frames and checkpoints of a run in time of a form; an error ends it.
pub trait FormObserver: Send {
    /// Called at each time of [`TimeStepping::frames`], with the number of the time and the solution at it.
    ///
    /// # Errors
    /// An error ends the run.
    fn frame(&mut self, _number: usize, _solution: &FormSolution<'_>) -> Result<(), SolveError> {
        Ok(())
    }

    /// Called with the state at each checkpoint.
    ///
    /// # Errors
    /// An error ends the run.
    fn checkpoint(&mut self, _state: &Checkpoint) -> Result<(), SolveError> {
        Ok(())
    }
}

/// Observes nothing.
impl FormObserver for () {}

/// The observer of a run, with the solution that it sees.
struct Observed<'a, 'm> {
    observer: &'a mut dyn FormObserver,
    problem: &'a FormProblem<'m>,
    solution: FormSolution<'m>,
}

impl Record for Observed<'_, '_> {
    fn frame(&mut self, number: usize, time: f64, values: Vec<f64>) -> Result<(), SolveError> {
        let solution = &mut self.solution;
        (solution.problem, solution.time, solution.u) = (self.problem.at_time(time), time, values);
        self.observer.frame(number, solution)
    }

    fn checkpoint(&mut self, state: &Checkpoint) -> Result<(), SolveError> {
        self.observer.checkpoint(state)
    }
}

impl<'m> FormProblem<'m> {
    /// Advances the equation $r(t, u, \partial u/\partial t) = 0$ of [`Self::in_time`] from [`Self::initial`], on one rank; returns the
    /// solution at the last time, and how the run ended.
    ///
    /// Stages are solved by Newton's method; if the form is linear by one linear solve, whose matrix is kept while the length of
    /// steps does not change and no entry depends on t. [`PreconditionerConfig::Auto`] is the diagonal if the tangent is not
    /// symmetric. A component whose rate is in no formula is determined at each time by its equation.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use femtile_device::Cpu;
    /// use femtile_form::Equation;
    /// use femtile_mesh::check::boundary_facets;
    /// use femtile_mesh::generate::{SquareConfig, square};
    /// use femtile_solve::{FormProblem, Silent, SolverConfig, Stages, TimeStepping, Value};
    ///
    /// // Fisher's equation: a population that grows and spreads.
    /// let text = r#"
    ///     unknown = { u = {} }
    ///     cells = { capacity = "1", flux = "0.01*grad(u)", source = "u*(1 - u)" }
    /// "#;
    /// let (mesh, cpu, mut silent) = (square(&SquareConfig::default())?, Cpu::new(1)?, Silent);
    /// let boundary = Arc::new(boundary_facets(&mesh));
    /// let mut problem = FormProblem::new(&mesh, boundary, Equation::from_toml("fisher", text)?).in_time();
    /// problem.initial(&[Value::from(0.5)])?;
    /// let stepping = TimeStepping { end: 2.0, ..TimeStepping::default() };
    /// let config = SolverConfig::default();
    /// let (solution, _) = problem.integrate(&stepping, &cpu, &config, None, &mut (), &mut Stages::new(&mut silent))?;
    /// assert!((solution.u()[0] - 1.0 / (1.0 + (-2.0_f64).exp())).abs() < 1e-4);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::solve`]; [`SolveError::Setting`] for an equation without the rate of u, for schemes that its rate does not go with,
    /// and for several ranks; errors of the observer. A run that stops before the end is an outcome.
    pub fn integrate(
        &self,
        stepping: &TimeStepping,
        cpu: &Cpu,
        config: &SolverConfig,
        opening: Option<Opening>,
        observer: &mut dyn FormObserver,
        stages: &mut Stages<'_>,
    ) -> Result<(FormSolution<'m>, Outcome), SolveError> {
        if !self.is_in_time || self.continuation.is_some() {
            let message = "the equation is not one in time, or has load steps: make it with `in_time`, without `continuation`";
            return Err(SolveError::setting(&["time".into()], message));
        }
        if config.ranks.n() > 1 {
            let message = "a form in time is solved by one rank: take ranks = 1";
            return Err(SolveError::solver("ranks", message));
        }
        let space = self.space()?;
        let at_start = self.at_time(stepping.start);
        stress::check(&at_start)?;
        let form = self.form()?;
        diffusion::check(&at_start, false)?;
        self.check_formulas(&form)?;
        if self.has_content {
            self.check_content(&form)?;
        }
        check_scheme(&form, stepping.scheme, self.has_content)?;
        let approximation = Approximation::new(self, &form, config);
        let is_auto = config.preconditioner == PreconditionerConfig::Auto;
        let mut config = config_for(config, &form)?;
        if is_auto && !approximation.takes_cg {
            config.preconditioner = PreconditionerConfig::Jacobi;
        }
        let config = &resolved(&config);
        config.check()?;
        check_preconditioner(config)?;
        let constraints =
            self.constraints_at(&space, space.n_dofs() * form.n_components(), stepping.start)?;
        let motions = Motions::new(&space, &form, &self.unknowns())?;
        let known = Known {
            problem: self,
            space: &space,
            form: &form,
            approximation: &approximation,
            time: stepping.start,
            constraints: &constraints,
            motions: &motions,
        };
        stages.begin(Stage::Assemble)?;
        let opened = match opening {
            Some(opening) => Some(opening.wait()?),
            None => config.device.open()?,
        };
        let work = (constraints.n_dofs(), stepping.steps.expected());
        let Choice { device, mut reason } = config.device.choose_for_steps(opened, work, cpu.threads());
        let mut warnings = self.notes().to_vec();
        warnings.extend(self.warnings_of_sides(&space)?);
        if let Chosen::Cuda(gpu) = &device {
            let gpu = config.device.with_overflow(gpu);
            let evaluate = known.on_gpu();
            let run = Run { known: &known, stepping, cpu, config, reason: &reason };
            match run.on((&gpu, evaluate), &warnings, observer, stages) {
                Err(error) if config.device == DeviceChoice::Auto && error.is_device_trouble() => {
                    reason = error.to_string();
                    warnings.push(format!("solved on the CPU: {reason}"));
                }
                done => return done,
            }
        }
        let run = Run { known: &known, stepping, cpu, config, reason: &reason };
        run.on((cpu, on_host), &warnings, observer, stages)
    }

    /// Refuses a content that depends on t, and formulas with the rate of an unknown beside it.
    fn check_content(&self, form: &Form) -> Result<(), SolveError> {
        let key = if self.is_of_library("capacity") { "capacity" } else { "enthalpy" };
        let refuse = |message| Err(SolveError::setting(&of_equation(key), message));
        if self.exact.is_some() {
            // The part of the function in the residual has no difference of its contents in place of a rate.
            return refuse(
                "a content has no manufactured solution: give a capacity that does not depend on u",
            );
        }
        if form.storage().is_in_time {
            return refuse("the content depends on the point and the unknown, not on t");
        }
        match self.equation.uses_rate() {
            true => refuse(
                "the content is the only term in time: leave the rate of the unknown out of other formulas",
            ),
            false => Ok(()),
        }
    }

    /// Returns whether Dirichlet values or jumps depend on the time.
    pub(super) fn has_values_in_time(&self) -> bool {
        let values = self.given.iter().flat_map(|given| given.values.iter().flatten());
        let jumps = self.pairs.iter().flat_map(|pair| &pair.jump);
        values.chain(jumps).any(femtile_form::Coefficient::uses_time)
    }
}

/// Refuses the trapezoidal rule, which advances r without the rate at the start of a step, where this does not determine the rate.
fn check_scheme(form: &Form, scheme: Scheme, has_content: bool) -> Result<(), SolveError> {
    if scheme != Scheme::CrankNicolson {
        return Ok(());
    }
    let storage = form.storage();
    let reason = if storage.capacity == Dependence::WithState && !has_content {
        "a capacity that depends on u"
    } else if storage.is_in_time {
        "a capacity that depends on t"
    } else if storage.components.contains(&false) {
        "components without a rate"
    } else {
        return Ok(());
    };
    let message = format!("\"crank-nicolson\" is not for {reason}: take \"bdf2\" or \"sdirk2\"");
    Err(SolveError::setting(&["time".into(), "method".into()], message))
}

/// A run of a problem.
struct Run<'a, 'm> {
    known: &'a Known<'a, 'm>,
    stepping: &'a TimeStepping,
    cpu: &'a Cpu,
    config: &'a SolverConfig,
    /// The reason for the device.
    reason: &'a str,
}

impl<'m> Run<'_, 'm> {
    fn on<D: RankDevice>(
        &self,
        (device, evaluate): (&D, Evaluate<D>),
        warnings: &[String],
        observer: &mut dyn FormObserver,
        stages: &mut Stages<'_>,
    ) -> Result<(FormSolution<'m>, Outcome), SolveError> {
        let &Self { known, stepping, cpu, config, reason } = self;
        let Known { problem, space, form, approximation, constraints, motions, .. } = *known;
        let operator = CpuOperator::new(DiscreteForm::new(space, form, &problem.facets)?, cpu)?;
        let all: Vec<u32> = (0..constraints.n_dofs() as u32).collect();
        // Rigid motions are those of elasticity, whose tangent is symmetric.
        let has_motions = approximation.takes_cg && takes_motions(config, form, motions);
        let near_nullspace = has_motions.then(|| motions.rows_of(&all, constraints));
        let (operator, comm) = (Some(operator), Comm::alone());
        let on_rank =
            RankForm { device, comm, cpu, operator, part: None, near_nullspace, loads: problem.loads(space) };
        let mass = match stepping.steps {
            Steps::Fixed(_) => None,
            Steps::Adaptive { .. } => Some(mass(known, &on_rank)?),
        };
        let equation = FormEquation::new(&on_rank, approximation, (config, evaluate), &|| false)?;
        let mut system = FormStages::new(known, equation, mass, config);
        if let Some(checkpoint) = &stepping.resume {
            system.restore(&checkpoint.memory)?;
        }
        let mut u = on_rank.of_whole(&problem.initial_values(space)?)?;
        system.impose(stepping.start, &mut u)?;
        system.equation.check_energy(&u)?;
        let parts = SystemSummary::of_refilled_matrix(Vec::new(), Vec::new());
        let shown = FormSolution {
            problem: problem.at_time(stepping.start),
            space: space.clone(),
            form: form.clone(),
            time: stepping.start,
            u: Vec::new(),
            nonlinear: None,
            load_steps: Vec::new(),
            modes: Vec::new(),
            outcome: linear_outcome(&not_begun(stepping.start)),
            by: SolvedBy::new((device, reason), parts, config),
            warnings: Vec::new(),
        };
        let mut observed = Observed { observer, problem, solution: shown };
        let resume = stepping.resume.as_deref();
        let from = Beginning { initial: u, resume, time_limit: config.time_limit };
        let (u, outcome) = stepping.integrate(from, &mut system, (&mut observed, None), stages)?;
        let mut warnings = warnings.to_vec();
        warnings.append(&mut system.equation.linear.warnings);
        warnings.extend(warnings_of(&outcome));
        if outcome.stop == Stop::SolverFailed {
            warnings.extend(system.failure.take());
        }
        let nonlinear = system.report();
        let mut citations = stepping.scheme.citations().to_vec();
        citations.extend(nonlinear.is_some().then_some("eisenstat1996"));
        let levels = std::mem::take(&mut system.equation.linear.levels);
        let parts = SystemSummary::of_refilled_matrix(levels, citations);
        let solution = FormSolution {
            problem: problem.at_time(outcome.time),
            time: outcome.time,
            u,
            nonlinear,
            outcome: linear_outcome(&outcome),
            by: SolvedBy::new((device, reason), parts, system.equation.linear.config()),
            warnings,
            ..observed.solution
        };
        Ok((solution, outcome))
    }
}

/// Returns the outcome of a run without steps.
fn not_begun(time: f64) -> Outcome {
    Outcome { stop: Stop::Finished, steps: 0, rejected: 0, restarts: 0, iterations: 0, idle: 0, time }
}

/// Returns the mass matrix of all components, which is that of norms.
fn mass<D: RankDevice>(
    known: &Known<'_, '_>,
    on: &RankForm<'_, D>,
) -> Result<Box<dyn LinearOperator<f64, D>>, SolveError> {
    let n = known.form.n_components();
    let components = (n > 1).then_some(Components::Count(n));
    let text = EquationText {
        unknown: [("u".to_owned(), Unknown { components })].into(),
        cells: CellTerms { source: "-u".into(), ..CellTerms::default() },
        ..EquationText::default()
    };
    let equation = Equation::new("mass", text)?;
    let form = known.problem.begun(&equation).build()?;
    let discrete = DiscreteForm::new(known.space, &form, &known.problem.facets)?;
    let operator = Some(CpuOperator::new(discrete, on.cpu)?);
    let of_mass = RankForm {
        device: on.device,
        comm: on.comm.clone(),
        cpu: on.cpu,
        operator,
        part: None,
        near_nullspace: None,
        loads: Vec::new(),
    };
    let mut cells = CellMatrix::new(on.cpu)?;
    cells.fill(&of_mass, &State::of(&[]), &LinearConstraints::none(known.constraints.n_dofs()))?;
    Ok(cells.operator(&of_mass)?)
}
