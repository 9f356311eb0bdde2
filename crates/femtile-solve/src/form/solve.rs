//! Assembly and solution of a problem of a form.

use femtile_amg::AmgConfig;
use femtile_device::cuda::Opening;
use femtile_device::{Cpu, Cuda, Device, DeviceError};
use femtile_form::Form;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_operator::{CpuOperator, DiscreteForm, State, form_programs};
use femtile_space::LinearConstraints;
use femtile_sparse::csr::Csr;

use super::approximation::{Approximation, is_convective};
use super::continuation::{Continuation, LoadStep};
use super::evaluation::{Evaluate, on_gpu, on_host};
use super::kernel::{CONSTANT, Free, Motions};
use super::lower_degree::with_lower_degree;
use super::on_ranks::Known;
use super::problem::method_of;
use super::solution::{FormSolution, SolvedBy};
use super::totals::subtract;
use super::{FormProblem, diffusion, newton, objectivity, stress};
use crate::device::{Choice, Chosen};
use crate::matrix::Given;
use crate::programs::likely_programs;
use crate::{
    AmgOptions, DeviceChoice, Method, NonlinearReport, PreconditionerConfig, Progress, SolveError,
    SolvedSystem, SolverConfig, Stage, Stages,
};

/// Forwards the iterations of a solver; the stages are those of the caller.
struct Iterations<'a>(&'a mut dyn Progress);

impl Progress for Iterations<'_> {
    fn iteration(&mut self, iteration: usize, relative_residual: f64, tolerance: f64) {
        self.0.iteration(iteration, relative_residual, tolerance);
    }

    fn solved(&mut self, system: &dyn SolvedSystem) {
        self.0.solved(system);
    }

    fn is_interrupted(&self) -> bool {
        self.0.is_interrupted()
    }
}

impl<'m> FormProblem<'m> {
    /// Solves the problem: assembles the matrix and solves on a GPU that is being opened, else on the device of the settings.
    /// Several ranks divide the matrix; each of them has the whole mesh and gets u, threads share both.
    ///
    /// $$ A w = -r(u_0), \qquad u = u_0 + w, $$
    ///
    /// where u₀ has the Dirichlet values and zeros. With [`PreconditionerConfig::Auto`] displacements have algebraic multigrid with the
    /// rigid motions as near-nullspace.
    ///
    /// A form whose tangent depends on u is solved by Newton's method with the settings of [`SolverConfig::nonlinear`], in load
    /// steps with [`Self::continuation`]. It begins at [`Self::initial`], to which Dirichlet values are added along the tangent if
    /// the residual is smaller so, else alone. GMRES is the method if the tangent is not symmetric.
    ///
    /// # Errors
    /// [`SolveError::Setting`] for coefficients out of range, motions that nothing holds, a load step that does not converge, and a
    /// method that needs a symmetric matrix where a linear form has none; as [`LinearSolver::new`](crate::LinearSolver::new); on
    /// several ranks for smoothers that they do not have. [`SolveError::Fem`] with cell and point if the integrand has no finite value
    /// at the first function; Newton's method that does not converge is an outcome.
    pub fn solve(
        &self,
        cpu: &Cpu,
        config: &SolverConfig,
        opening: Option<Opening>,
        stages: &mut Stages<'_>,
    ) -> Result<FormSolution<'m>, SolveError> {
        let space = self.space()?;
        self.continuation.map_or(Ok(()), Continuation::check)?;
        let (time, at_end) = (self.end(), self.at_time(self.end()));
        stress::check(&at_end)?;
        let form = self.form()?;
        diffusion::check(&at_end, form.is_linear())?;
        self.check_steady()?;
        self.check_formulas(&form)?;
        let approximation = Approximation::new(self, &form, config);
        let mut config = config_for(config, &form)?;
        if let Some(opening) = &opening {
            let programs = (!form.is_linear()).then(|| form_programs(&form, space.element()));
            let config = config.clone();
            opening.prepare(move || [programs.unwrap_or_default(), likely_programs(&config, None)].concat());
        }
        let constraints = self.constraints_at(&space, space.n_dofs() * form.n_components(), time)?;
        let motions = Motions::new(&space, &form, &self.unknowns())?;
        let discrete = DiscreteForm::new(&space, &form, &self.facets)?;
        if let Some(free) = motions.free(discrete, &constraints)? {
            return Err(refusal(&free));
        }
        with_lower_degree(&mut config, (&space, &form), &motions, &constraints)?;
        let mut warnings: Vec<String> = diffusion::peclet_warning(&at_end).into_iter().collect();
        warnings.extend(objectivity::warnings(self, &form));
        warnings.extend(self.warnings());

        let known = Known {
            problem: self,
            space: &space,
            form: &form,
            approximation: &approximation,
            time,
            constraints: &constraints,
            motions: &motions,
        };
        let Solved { u, time, outcome, by, warnings: of_solver, nonlinear, load_steps } =
            match config.ranks.n() {
                1 if form.is_linear() => known.solve_on_one_rank(cpu, &config, opening, stages)?,
                1 => known.newton_on_one_rank(cpu, &config, opening, stages)?,
                _ => known.solve_on_ranks(cpu, &config, opening, stages)?,
            };
        warnings.extend(of_solver);
        let problem = self.at_time(time);
        Ok(FormSolution {
            problem,
            space,
            form,
            time,
            u,
            rate: Vec::new(),
            nonlinear,
            load_steps,
            modes: Vec::new(),
            outcome,
            by,
            warnings,
        })
    }
}

/// The function that was found.
pub(super) struct Solved {
    /// u; empty on ranks that do not keep it.
    pub u: Vec<f64>,
    /// The time t at which it was sought.
    pub time: f64,
    pub outcome: CgOutcome,
    pub by: SolvedBy,
    pub warnings: Vec<String>,
    /// None of a linear form.
    pub nonlinear: Option<NonlinearReport>,
    /// The load steps of a nonlinear form.
    pub load_steps: Vec<LoadStep>,
}

impl Known<'_, '_> {
    /// Returns u from its change from the Dirichlet values.
    pub fn changed_by(&self, change: &[f64]) -> Vec<f64> {
        let mut u = change.to_vec();
        // Ranks that do not keep u have no change.
        if !u.is_empty() {
            self.constraints.impose(&mut u);
        }
        u
    }

    /// Returns how a form is evaluated if the device is a GPU.
    pub fn on_gpu(&self) -> Evaluate<Cuda> {
        if self.constraints.combines_dofs() { on_host } else { on_gpu }
    }

    /// Opens the GPU, if there is to be one, and chooses the device.
    pub fn choice(
        &self,
        cpu: &Cpu,
        config: &SolverConfig,
        opening: Option<Opening>,
    ) -> Result<Choice, SolveError> {
        let gpu = match opening {
            Some(opening) => Some(opening.wait()?),
            None => config.device.open()?,
        };
        Ok(config.device.choose(gpu, self.constraints.n_dofs(), cpu.threads()))
    }

    /// Solves a linear form.
    fn solve_on_one_rank(
        &self,
        cpu: &Cpu,
        config: &SolverConfig,
        opening: Option<Opening>,
        stages: &mut Stages<'_>,
    ) -> Result<Solved, SolveError> {
        let Self { problem, space, form, time, constraints, motions, .. } = *self;
        stages.begin(Stage::Assemble)?;
        let choice = self.choice(cpu, config, opening)?;
        let loads = problem.loads(space);
        let at = Conditions { constraints, time, loads: &loads };
        let discrete = DiscreteForm::new(space, form, &problem.facets)?;
        let assembled = match &choice.device {
            Chosen::Cuda(gpu) => assemble(cpu, Some(gpu), discrete, at),
            Chosen::Cpu => assemble(cpu, None, discrete, at),
        };
        let (matrix, b) = match assembled {
            // The geometry of all points may need more memory than the matrix.
            Err(SolveError::Device(error))
                if config.device == DeviceChoice::Auto
                    || matches!(error, DeviceError::OutOfMemory { .. }) =>
            {
                assemble(cpu, None, discrete, at)?
            }
            other => other?,
        };
        stages.begin(Stage::Setup)?;
        let near_nullspace =
            takes_motions(config, form, motions).then(|| motions.near_nullspace(constraints));
        let approximation = self.approximation.of(&matrix, config)?;
        let given =
            Given { near_nullspace: near_nullspace.as_deref(), approximation: approximation.as_ref() };
        let (solver, warning) = self.approximation.solver(&matrix, given, config, Some(choice))?;
        drop((matrix, near_nullspace, approximation));
        stages.begin(Stage::Solve)?;
        let solved = solver.solve_from(vec![0.0; b.len()], &b, &mut Iterations(stages.progress()))?;
        let (format, format_reason) = solver.format();
        let by = SolvedBy {
            device: solver.device(),
            device_reason: solver.device_reason().to_owned(),
            format: format.name(),
            format_reason: format_reason.to_owned(),
            preconditioner: solver.preconditioner(),
            levels: solver.levels(),
            citations: config.citations(&[]),
            kernel_launches: solver.gpu().map_or(0, Device::kernel_launches),
            memory: solver.gpu().and_then(Device::memory_use),
            ranks: None,
        };
        Ok(Solved {
            u: self.changed_by(&solved.x),
            time,
            outcome: solved.outcome,
            by,
            warnings: warning.into_iter().chain(solver.warnings().to_vec()).collect(),
            nonlinear: None,
            load_steps: Vec::new(),
        })
    }
}

/// Dirichlet values, time and point loads of a linear form.
#[derive(Clone, Copy)]
pub(super) struct Conditions<'a> {
    pub constraints: &'a LinearConstraints,
    pub time: f64,
    /// The right side of sources at points.
    pub loads: &'a [(u32, f64)],
}

/// Assembles A and $b = -r(u_0)$ on a mesh or a part of one at a time, the cells of A on a GPU if there is one; rows and columns
/// of Dirichlet values have the diagonal alone.
pub(super) fn assemble(
    cpu: &Cpu,
    gpu: Option<&Cuda>,
    discrete: DiscreteForm<'_>,
    Conditions { constraints, time, loads }: Conditions<'_>,
) -> Result<(Csr<f64, Cpu>, Vec<f64>), SolveError> {
    let operator = CpuOperator::new(discrete, cpu)?;
    let n = discrete.n_unknowns();
    let (mut u, mut b) = (vec![0.0; n], vec![0.0; n]);
    constraints.impose(&mut u);
    let state = State { time, ..State::of(&u) };
    operator.residual(&state, &mut b)?;
    subtract(loads, &mut b);
    constraints.distribute_transpose(&mut b);
    b.iter_mut().for_each(|b| *b = -*b);
    let pattern = operator.pattern(constraints)?;
    let matrix = match gpu {
        // A GPU has no sums of rows for constraints that combine unknowns.
        Some(gpu) if !constraints.combines_dofs() => operator.assemble_on(gpu, &state, pattern)?,
        _ => operator.assemble(&state, pattern)?,
    };
    Ok((matrix, b))
}

/// Returns whether multigrid gets the motions as near-nullspace; it makes constants itself.
pub(super) fn takes_motions(config: &SolverConfig, form: &Form, motions: &Motions) -> bool {
    let is_multigrid = matches!(config.preconditioner, PreconditionerConfig::Amg(_));
    is_multigrid && form.n_components() > 1 && !motions.is_empty()
}

/// Returns the settings for the matrix of a form, with the preconditioner of displacements.
pub(super) fn config_for(config: &SolverConfig, form: &Form) -> Result<SolverConfig, SolveError> {
    let (mut config, is_linear) = (config.clone(), form.is_linear());
    if !is_linear {
        newton::check(&config)?;
    }
    let takes_cg = form.takes_conjugate_gradients();
    if !takes_cg && !matches!(config.method, Method::Gmres { .. }) {
        if is_linear {
            let message = match form.is_symmetric() {
                true => {
                    "the matrix is that of a saddle point and not positive definite: take method = \"gmres\""
                }
                false => "the matrix is not symmetric: take method = \"gmres\"",
            };
            return Err(SolveError::solver("method", message));
        }
        config.method = method_of(form);
    }
    let is_auto = config.preconditioner == PreconditionerConfig::Auto;
    // Multigrid of an approximation of the tangent, which ranks do not have. Of strong convection on large meshes it may not converge,
    // so that the diagonal is the choice for a number with convection.
    let is_carried = form.n_components() == 1 && is_convective(form);
    if is_auto && !takes_cg && !is_carried && config.ranks.n() == 1 {
        config.preconditioner = PreconditionerConfig::Amg(AmgOptions::default());
    }
    let n = form.n_components();
    let displacements = AmgConfig::displacements(n);
    let takes_multigrid = matches!(config.method, Method::Cg | Method::PipelinedCg);
    match &mut config.preconditioner {
        auto @ PreconditionerConfig::Auto if n > 1 && takes_multigrid => {
            *auto = PreconditionerConfig::Amg(AmgOptions { config: displacements, ..AmgOptions::default() });
        }
        PreconditionerConfig::Amg(options) if n > 1 => match options.config == AmgConfig::default() {
            true => options.config = displacements,
            false => options.config.block_size = n,
        },
        _ => {}
    }
    Ok(config)
}

/// Returns the error of a problem whose solution is one of many.
pub(super) fn refusal(Free { motions, at }: &Free) -> SolveError {
    let part = at.map_or(String::new(), |[x, y, z]| format!(" in the part of the mesh with ({x}, {y}, {z})"));
    let message = match &motions[..] {
        [only] if only == CONSTANT => format!(
            "nothing determines u but up to a constant{part}: give a `dirichlet` or `robin` condition, or `lambda`"
        ),
        motions => format!(
            "the body is free to move{part}, and the solution is one of many: {}; fix components with `dirichlet` on parts of \
             the boundary or at `nodes`, such as dirichlet = [0, \"free\", \"free\"]",
            motions.join(", ")
        ),
    };
    SolveError::setting(&["boundary".into()], message)
}
