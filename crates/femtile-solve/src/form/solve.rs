//! Assembly and solution of a problem of a form.

use femtile_amg::AmgConfig;
use femtile_device::cuda::Opening;
use femtile_device::{Cpu, Device, DeviceError};
use femtile_form::Form;
use femtile_operator::{CpuOperator, DiscreteForm, OperatorError, State};
use femtile_space::{LinearConstraints, Space};

use super::given::constraints;
use super::kernel::{CONSTANT, Free, Motions};
use super::solution::{FormSolution, SolvedBy};
use super::{FormProblem, diffusion, stress};
use crate::device::Chosen;
use crate::{
    AmgOptions, DeviceChoice, LinearSolver, Method, PreconditionerConfig, Progress, SolveError, SolvedSystem,
    SolverConfig, Stage, Stages,
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
    ///
    /// $$ A w = -r(u_0), \qquad u = u_0 + w, $$
    ///
    /// where u₀ has the Dirichlet values and zeros. With [`PreconditionerConfig::Auto`] displacements have algebraic multigrid with the
    /// rigid motions as near-nullspace.
    ///
    /// # Errors
    /// [`SolveError::Setting`] for coefficients out of range, motions that nothing holds, and a method that needs a symmetric
    /// matrix where the form has none; as [`LinearSolver::new`].
    pub fn solve(
        &self,
        cpu: &Cpu,
        config: &SolverConfig,
        opening: Option<Opening>,
        stages: &mut Stages<'_>,
    ) -> Result<FormSolution<'m>, SolveError> {
        let space = Space::new(self.mesh, self.degree)?;
        stress::check(self)?;
        diffusion::check(self)?;
        let form = self.form()?;
        let config = config_for(config, &form)?;
        let constraints = match self.given.is_empty() {
            true => LinearConstraints::none(space.n_dofs() * form.n_components()),
            false => constraints(&space, &self.boundary, &self.given)?,
        };
        let motions = Motions::new(&space, &form)?;
        if let Some(free) = motions.free(&space, &form, &constraints)? {
            return Err(refusal(&free));
        }
        let mut warnings: Vec<String> = diffusion::peclet_warning(self).into_iter().collect();
        warnings.extend_from_slice(self.notes());

        stages.begin(Stage::Assemble)?;
        let discrete = DiscreteForm::new(&space, &form, &self.boundary)?;
        let operator = CpuOperator::new(discrete, cpu)?;
        let n = discrete.n_unknowns();
        let (mut u, mut b) = (vec![0.0; n], vec![0.0; n]);
        constraints.impose(&mut u);
        operator.residual(&State::of(&u), &mut b)?;
        constraints.distribute_transpose(&mut b);
        b.iter_mut().for_each(|b| *b = -*b);
        let pattern = operator.pattern(&constraints)?;
        let gpu = match opening {
            Some(opening) => Some(opening.wait()?),
            None => config.device.open()?,
        };
        let choice = config.device.choose(gpu, n, cpu.threads());
        let matrix = match &choice.device {
            Chosen::Cuda(gpu) => match operator.assemble_on(gpu, &State::of(&u), &pattern) {
                // The geometry of all points may need more memory than the matrix.
                Err(OperatorError::Device(error))
                    if config.device == DeviceChoice::Auto
                        || matches!(error, DeviceError::OutOfMemory { .. }) =>
                {
                    operator.assemble(&State::of(&u), &pattern)?
                }
                other => other?,
            },
            Chosen::Cpu => operator.assemble(&State::of(&u), &pattern)?,
        };
        drop((operator, pattern));

        stages.begin(Stage::Setup)?;
        let near_nullspace = matches!(config.preconditioner, PreconditionerConfig::Amg(_))
            .then(|| motions.near_nullspace(&constraints));
        let near_nullspace = near_nullspace.filter(|vectors| !vectors.is_empty() && form.n_components() > 1);
        let solver = LinearSolver::build(&matrix, near_nullspace.as_deref(), &config, Some(choice))?;
        drop(matrix);
        stages.begin(Stage::Solve)?;
        let solved = solver.solve_from(vec![0.0; n], &b, &mut Iterations(stages.progress()))?;
        u.iter_mut().zip(solved.x).for_each(|(u, w)| *u += w);
        warnings.extend_from_slice(solver.warnings());
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
        };
        Ok(FormSolution { problem: self.clone(), space, form, u, outcome: solved.outcome, by, warnings })
    }
}

/// Returns the settings for the matrix of a form, with the preconditioner of displacements.
fn config_for(config: &SolverConfig, form: &Form) -> Result<SolverConfig, SolveError> {
    let mut config = config.clone();
    if !form.is_symmetric() && !matches!(config.method, Method::Gmres { .. }) {
        let message = "the matrix is not symmetric: take method = \"gmres\"";
        return Err(SolveError::solver("method", message));
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
fn refusal(Free { motions, at }: &Free) -> SolveError {
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
