//! Runs in time of problems of a form.

use std::sync::{Arc, Mutex, PoisonError};

use femtile_comm::Comm;
use femtile_device::Cpu;
use femtile_device::cuda::Opening;
use femtile_form::{CellTerms, Components, Dependence, Equation, EquationText, Form, Unknown};
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_operator::{CpuOperator, DiscreteForm, State};
use femtile_space::{LinearConstraints, Space};
use femtile_time::implicit::{Checkpoint, Outcome, Scheme, Steps, Stop};

use super::approximation::Approximation;
use super::equation::FormEquation;
use super::evaluation::{Evaluate, on_host};
use super::kernel::Motions;
use super::lower_degree::with_lower_degree;
use super::on_ranks::{Division, Known, opened_for_ranks};
use super::part::FormPart;
use super::problem::of_equation;
use super::rank_form::{CellMatrix, RankForm};
use super::solution::{FormSolution, SolvedBy};
use super::solve::{config_for, takes_motions};
use super::stages::FormStages;
use super::{FormProblem, diffusion, stress};
use crate::device::{Choice, Chosen};
use crate::matrix::{check_preconditioner, resolved};
use crate::ranks::device::{RankDevices, joined};
use crate::ranks::rows::agreed;
use crate::ranks::{GlobalUnknowns, Keepers, RankDevice, on_all};
use crate::system::SystemSummary;
use crate::transient::{Beginning, Moment, Record, linear_outcome, warnings_of};
use crate::{
    DeviceChoice, NonlinearReport, PreconditionerConfig, SolveError, SolverConfig, Stage, Stages,
    TimeStepping,
};

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
    fn frame(&mut self, number: usize, time: f64, at: Moment) -> Result<(), SolveError> {
        let solution = &mut self.solution;
        (solution.problem, solution.time) = (self.problem.at_time(time), time);
        (solution.u, solution.rate) = (at.values, at.rate);
        self.observer.frame(number, solution)
    }

    fn checkpoint(&mut self, state: &Checkpoint) -> Result<(), SolveError> {
        self.observer.checkpoint(state)
    }
}

impl<'m> FormProblem<'m> {
    /// Advances the equation $r(t, u, \partial u/\partial t) = 0$ of [`Self::in_time`] from [`Self::initial`]; returns the solution at
    /// the last time, and how the run ended. Several ranks divide the unknowns; each of them has the whole mesh, and the first one calls
    /// the observer.
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
    /// and for ranks that go on from other states; errors of the observer. A run that stops before the end is an outcome.
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
        config = resolved(&config);
        config.check()?;
        check_preconditioner(&config)?;
        let constraints =
            self.constraints_at(&space, space.n_dofs() * form.n_components(), stepping.start)?;
        let motions = Motions::new(&space, &form, &self.unknowns())?;
        with_lower_degree(&mut config, (&space, &form), &motions, &constraints)?;
        let config = &config;
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
        let mut warnings = self.warnings();
        let run = Run { known: &known, stepping, config };
        if config.ranks.n() > 1 {
            let ended = run.on_ranks(cpu, opening, observer, stages)?;
            return Ok(run.solution(ended, &warnings));
        }
        let opened = match opening {
            Some(opening) => Some(opening.wait()?),
            None => config.device.open()?,
        };
        let work = (constraints.n_dofs(), stepping.steps.expected());
        let Choice { device, mut reason } = config.device.choose_for_steps(opened, work, cpu.threads());
        if let Chosen::Cuda(gpu) = &device {
            let gpu = config.device.with_overflow(gpu);
            let evaluate = known.on_gpu();
            match run.on_one_rank((&gpu, evaluate), (cpu, &reason), observer, stages) {
                Err(error) if config.device == DeviceChoice::Auto && error.is_device_trouble() => {
                    reason = error.to_string();
                    warnings.push(format!("solved on the CPU: {reason}"));
                }
                ended => return Ok(run.solution(ended?, &warnings)),
            }
        }
        let ended = run.on_one_rank((cpu, on_host), (cpu, &reason), observer, stages)?;
        Ok(run.solution(ended, &warnings))
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
    config: &'a SolverConfig,
}

/// The end of a run.
struct Ended {
    /// u and its rate; empty on ranks that do not keep them.
    at: Moment,
    outcome: Outcome,
    nonlinear: Option<NonlinearReport>,
    by: SolvedBy,
    warnings: Vec<String>,
}

/// The last function of a run at the owned unknowns of a rank, and what was used.
struct Advanced {
    own: Moment,
    outcome: Outcome,
    nonlinear: Option<NonlinearReport>,
    parts: SystemSummary,
    /// With the method and the preconditioner of the last linear solve.
    config: SolverConfig,
    warnings: Vec<String>,
}

impl Advanced {
    fn into_ended(self, at: Moment, by: SolvedBy) -> Ended {
        let Self { outcome, nonlinear, warnings, .. } = self;
        Ended { at, outcome, nonlinear, by, warnings }
    }
}

impl<'m> Run<'_, 'm> {
    fn on_one_rank<D: RankDevice>(
        &self,
        (device, evaluate): (&D, Evaluate<D>),
        (cpu, reason): (&Cpu, &str),
        observer: &mut dyn FormObserver,
        stages: &mut Stages<'_>,
    ) -> Result<Ended, SolveError> {
        let Known { problem, space, form, constraints, .. } = *self.known;
        let operator = CpuOperator::new(DiscreteForm::new(space, form, &problem.facets)?, cpu)?;
        let all: Vec<u32> = (0..constraints.n_dofs() as u32).collect();
        let near_nullspace = self.near_nullspace(&all);
        let (operator, comm) = (Some(operator), Comm::alone());
        let on_rank =
            RankForm { device, comm, cpu, operator, part: None, near_nullspace, loads: problem.loads(space) };
        let mass = self.mass(&on_rank, Some((problem, space)))?;
        let mut observed = self.observed(observer, (device, reason));
        let mut advanced = self.advance((&on_rank, evaluate), mass, (&mut observed, None), stages)?;
        let by = SolvedBy::new((device, reason), advanced.parts.clone(), &advanced.config);
        let at = std::mem::take(&mut advanced.own);
        Ok(advanced.into_ended(at, by))
    }

    /// Runs on several ranks.
    fn on_ranks(
        &self,
        cpu: &Cpu,
        opening: Option<Opening>,
        observer: &mut dyn FormObserver,
        stages: &mut Stages<'_>,
    ) -> Result<Ended, SolveError> {
        let &Self { known, stepping, config } = self;
        known.check_ranks(config)?;
        config.ranks.check_resumed(stepping.resume.as_deref())?;
        let opened = opened_for_ranks(config, opening)?;
        let division = known.divide(config)?;
        // Threads share the observer, which the first one calls.
        let observer = Mutex::new(Some(observer));
        let take = || observer.lock().unwrap_or_else(PoisonError::into_inner).take();
        let work = |cpu: &Cpu, comm: &Comm, stages: &mut Stages<'_>, keepers: Keepers| {
            let mut none = ();
            let observer = if comm.rank() == 0 { take() } else { None }.unwrap_or(&mut none);
            let with = (&division, keepers);
            match joined(comm, opened.as_ref(), config)? {
                (Some(gpu), comm) => {
                    self.on_rank(RankDevices { cpu, device: &gpu, comm: &comm }, with, observer, stages)
                }
                (None, comm) => {
                    self.on_rank(RankDevices { cpu, device: cpu, comm: &comm }, with, observer, stages)
                }
            }
        };
        on_all(cpu, &config.ranks, work, stages)
    }

    /// Runs on one of several ranks, on its device. Collective.
    fn on_rank<D: RankDevice>(
        &self,
        on: RankDevices<'_, D>,
        (division, keepers): (&Division<'_, '_>, Keepers),
        observer: &mut dyn FormObserver,
        stages: &mut Stages<'_>,
    ) -> Result<Ended, SolveError> {
        let RankDevices { device, comm, .. } = on;
        let part = division.part(self.known.problem, comm.rank());
        let (own, unknowns) = self.known.on_part::<D>(comm, part.as_ref())?;
        let (halo, owned) = (Arc::clone(unknowns.halo()), unknowns.owned.clone());
        let near_nullspace = self.near_nullspace(&owned);
        let global = GlobalUnknowns { comm, n: unknowns.n, unknowns: &owned };
        let on_rank = self.known.rank_form(on, (own.as_ref(), unknowns), near_nullspace)?;
        let mass = self.mass(&on_rank, own.as_ref().map(FormPart::problem))?;
        let mut observed = self.observed(observer, (device, D::REASON));
        let record: (&mut dyn Record, _) = (&mut observed, Some(&global));
        let mut advanced = self.advance((&on_rank, on_host), mass, record, stages)?;
        let by = division.solved_by((device, &halo), advanced.parts.clone(), &advanced.config)?;
        let Moment { values, rate } = std::mem::take(&mut advanced.own);
        let gather = |(factor, own): (f64, Vec<f64>)| Ok((factor, global.gather(&own, keepers)?));
        let rate = rate.into_iter().map(gather).collect::<Result<_, LinalgError>>()?;
        let at = Moment { values: global.gather(&values, keepers)?, rate };
        Ok(advanced.into_ended(at, by))
    }

    /// Returns the motions for multigrid at some unknowns. Rigid motions are those of elasticity, whose tangent is symmetric.
    fn near_nullspace(&self, unknowns: &[u32]) -> Option<Vec<f64>> {
        let Known { form, approximation, constraints, motions, .. } = *self.known;
        let has_motions = approximation.takes_cg && takes_motions(self.config, form, motions);
        has_motions.then(|| motions.rows_of(unknowns, constraints))
    }

    /// Returns the mass matrix, which is that of norms, if the lengths of steps depend on them; `on` is the problem on the cells of the
    /// rank. Collective.
    fn mass<D: RankDevice>(
        &self,
        form: &RankForm<'_, D>,
        on: Option<(&FormProblem<'_>, &Space<'_>)>,
    ) -> Result<Option<Box<dyn LinearOperator<f64, D>>>, SolveError> {
        match self.stepping.steps {
            Steps::Fixed(_) => Ok(None),
            Steps::Adaptive { .. } => mass(self.known.form.n_components(), form, on).map(Some),
        }
    }

    /// Returns the observer with a solution that has no values yet.
    fn observed<'o, D: RankDevice>(
        &'o self,
        observer: &'o mut dyn FormObserver,
        (device, reason): (&D, &str),
    ) -> Observed<'o, 'm> {
        let parts = SystemSummary::of_refilled_matrix(Vec::new(), Vec::new());
        let begun = Ended {
            at: Moment::default(),
            outcome: not_begun(self.stepping.start),
            nonlinear: None,
            by: SolvedBy::new((device, reason), parts, self.config),
            warnings: Vec::new(),
        };
        Observed { observer, problem: self.known.problem, solution: self.solution(begun, &[]).0 }
    }

    /// Returns the solution at the end of a run, with warnings about the problem.
    fn solution(&self, ended: Ended, warnings: &[String]) -> (FormSolution<'m>, Outcome) {
        let Known { problem, space, form, .. } = *self.known;
        let Ended { at: Moment { values, rate }, outcome, nonlinear, by, warnings: of_run } = ended;
        let solution = FormSolution {
            problem: problem.at_time(outcome.time),
            space: space.clone(),
            form: form.clone(),
            time: outcome.time,
            u: values,
            rate,
            nonlinear,
            load_steps: Vec::new(),
            modes: Vec::new(),
            outcome: linear_outcome(&outcome),
            by,
            warnings: [warnings, &of_run].concat(),
        };
        (solution, outcome)
    }

    /// Advances the unknowns of a rank to the end. Collective.
    fn advance<D: RankDevice>(
        &self,
        (form, evaluate): (&RankForm<'_, D>, Evaluate<D>),
        mass: Option<Box<dyn LinearOperator<f64, D>>>,
        record: (&mut dyn Record, Option<&GlobalUnknowns<'_>>),
        stages: &mut Stages<'_>,
    ) -> Result<Advanced, SolveError> {
        let &Self { known, stepping, config } = self;
        let equation = FormEquation::new(form, known.approximation, (config, evaluate), &|| false)?;
        let mut system = FormStages::new(known, equation, mass, config);
        let resume = stepping.resume.as_deref().map(|state| form.resumed(state)).transpose()?;
        if let Some(checkpoint) = &resume {
            system.restore(&checkpoint.memory)?;
        }
        let mut u = form.of_whole(&known.problem.initial_values(known.space)?)?;
        system.impose(stepping.start, &mut u)?;
        system.equation.check_energy(&u)?;
        let from = Beginning { initial: u, resume: resume.as_deref(), time_limit: config.time_limit };
        let (own, outcome) = stepping.integrate(from, &mut system, record, stages)?;
        let mut warnings = std::mem::take(&mut system.equation.linear.warnings);
        warnings.extend(warnings_of(&outcome));
        if outcome.stop == Stop::SolverFailed {
            warnings.extend(system.failure.take());
        }
        let nonlinear = system.report();
        let mut citations = stepping.scheme.citations().to_vec();
        citations.extend(nonlinear.is_some().then_some("eisenstat1996"));
        let levels = std::mem::take(&mut system.equation.linear.levels);
        let parts = SystemSummary::of_refilled_matrix(levels, citations);
        let config = system.equation.linear.config().clone();
        Ok(Advanced { own, outcome, nonlinear, parts, config, warnings })
    }
}

/// Returns the outcome of a run without steps.
fn not_begun(time: f64) -> Outcome {
    Outcome { stop: Stop::Finished, steps: 0, rejected: 0, restarts: 0, iterations: 0, idle: 0, time }
}

/// Returns the mass matrix of `n` components on the cells of a rank, none if it has no cells. Collective.
fn mass<D: RankDevice>(
    n: usize,
    on_rank: &RankForm<'_, D>,
    on: Option<(&FormProblem<'_>, &Space<'_>)>,
) -> Result<Box<dyn LinearOperator<f64, D>>, SolveError> {
    let components = (n > 1).then_some(Components::Count(n));
    let text = EquationText {
        unknown: [("u".to_owned(), Unknown { components })].into(),
        cells: CellTerms { source: "-u".into(), ..CellTerms::default() },
        ..EquationText::default()
    };
    let equation = Equation::new("mass", text)?;
    let form = on.map(|(problem, _)| problem.begun(&equation).build()).transpose()?;
    let operator = match (on, &form) {
        (Some((problem, space)), Some(form)) => DiscreteForm::new(space, form, &problem.facets)
            .and_then(|discrete| CpuOperator::new(discrete, on_rank.cpu))
            .map(Some),
        _ => Ok(None),
    };
    let of_mass = RankForm {
        device: on_rank.device,
        comm: on_rank.comm.clone(),
        cpu: on_rank.cpu,
        operator: agreed(&on_rank.comm, operator.map_err(SolveError::from))?,
        part: on_rank.part.clone(),
        near_nullspace: None,
        loads: Vec::new(),
    };
    let mut cells = CellMatrix::new(on_rank.cpu)?;
    let free = LinearConstraints::none(of_mass.n_of_cells());
    agreed(&on_rank.comm, cells.fill(&of_mass, &State::of(&[]), &free))?;
    Ok(cells.operator(&of_mass)?)
}
