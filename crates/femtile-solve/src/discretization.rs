//! Problems on their spaces: coefficients resolved, conditions found, ready to be assembled and solved.

use std::sync::Arc;
use std::time::{Duration, Instant};

use femtile_comm::OwnedRows;
use femtile_device::cuda::Opening;
use femtile_device::{Buffer, Cpu, Cuda, part};
use femtile_fem::assembly::assemble_matrix;
use femtile_fem::functionals::{self, Line};
use femtile_fem::tensor::TensorProblem;
use femtile_fem::{BoundaryCondition, Coefficient, FemError, Form, assemble};
use femtile_linalg::LinalgError;
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_matrix_free::CellRule;
use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;
use femtile_space::{Space, TensorSpace};
use femtile_sparse::Csr;

use crate::auto::{Boxed, Circumstances, Solves};
use crate::boundary::{InnerFacets, Selected};
use crate::check::check_cells;
use crate::component::Component;
use crate::contrast;
use crate::device::{Choice, Chosen};
use crate::nonlinear::{self, MassMatrix};
use crate::output::SolutionFile;
use crate::overlap::Overlap;
use crate::plan::Plan;
use crate::preconditioner::RowsOfProblem;
use crate::ranks::{self, MeshOnRanks};
use crate::right_side::RightSide;
use crate::solution::{Finished, Solution};
use crate::system::{LinearSystem, PreconditionedOperator};
use crate::tensor::{self, Ahead, Boxes, OnCells, OperatorDevice};
use crate::unseen::unseen_sources;
use crate::{
    DeviceChoice, GmgOptions, Key, Ranks, Region, SolveError, SolverConfig, SpaceConfig, Stage, Stages, Value,
};

/// A problem on its space, with coefficients and conditions in terms of the mesh.
#[derive(Debug)]
pub struct Discretization<'m> {
    pub(crate) mesh: &'m Mesh,
    pub(crate) boundary: Arc<BoundaryFacets>,
    pub(crate) sigma: Coefficient,
    pub(crate) lambda: Coefficient,
    /// The factor c of ∂u/∂t in an equation in time.
    pub(crate) capacity: Coefficient,
    /// Of each component.
    pub(crate) sources: Vec<Coefficient>,
    pub(crate) conditions: Vec<Vec<BoundaryCondition>>,
    pub(crate) config: SpaceConfig,
    /// None for linear elements on simplices.
    pub(crate) space: Option<Arc<TensorSpace<'m>>>,
    /// The initial iterate if a coefficient depends on u.
    pub(crate) initial: Value,
    pub(crate) overlaps: Vec<Overlap>,
    pub(crate) inner_facets: Vec<InnerFacets>,
    pub(crate) node_overlaps: Vec<Overlap>,
    pub(crate) warnings: Vec<String>,
    /// Present if the mesh is distributed.
    pub(crate) divided: Option<MeshOnRanks<'m>>,
}

/// The coefficients and conditions of a problem on its mesh.
pub(crate) struct ProblemData {
    pub sigma: Coefficient,
    pub lambda: Coefficient,
    pub capacity: Coefficient,
    /// Of each component, as are the conditions.
    pub sources: Vec<Coefficient>,
    pub conditions: Vec<Vec<BoundaryCondition>>,
}

impl<'m> Discretization<'m> {
    /// Returns the mesh.
    pub fn mesh(&self) -> &'m Mesh {
        self.mesh
    }

    /// Returns the space of any degree; none for linear elements on simplices.
    pub fn space(&self) -> Option<&TensorSpace<'m>> {
        self.space.as_deref()
    }

    /// Returns the number of components of u.
    pub fn n_components(&self) -> usize {
        self.config.components
    }

    /// Returns the number of degrees of freedom of a component, constrained ones included.
    pub fn n_dofs(&self) -> usize {
        self.space().map_or(self.mesh.n_nodes(), TensorSpace::n_dofs)
    }

    /// Returns the part of the file of the solution that is known before the solve.
    pub fn file(&self) -> SolutionFile<'m> {
        SolutionFile { mesh: self.mesh, space: self.space.clone(), components: self.config.components }
    }

    /// Returns the conditions on tags that are on inner facets too.
    pub fn inner_facets(&self) -> &[InnerFacets] {
        &self.inner_facets
    }

    /// Returns conditions that take facets from others.
    pub fn overlaps(&self) -> &[Overlap] {
        &self.overlaps
    }

    /// Returns conditions that take nodes from those that name nodes.
    pub fn node_overlaps(&self) -> &[Overlap] {
        &self.node_overlaps
    }

    /// Returns notes on the data of the problem, such as fibres that were normalised.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the form of a component.
    pub fn form(&self, component: usize) -> Form<'_> {
        Form {
            mesh: self.mesh,
            boundary: &self.boundary,
            sigma: &self.sigma,
            lambda: &self.lambda,
            source: &self.sources[component],
            conditions: &self.conditions[component],
        }
    }

    /// Returns the problem with the values of a time.
    pub(crate) fn at_time(&self, t: f64) -> Self {
        let of_component =
            |conditions: &Vec<BoundaryCondition>| conditions.iter().map(|given| given.at_time(t)).collect();
        self.with(ProblemData {
            sigma: self.sigma.at_time(t),
            lambda: self.lambda.at_time(t),
            capacity: self.capacity.clone(),
            sources: self.sources.iter().map(|source| source.at_time(t)).collect(),
            conditions: self.conditions.iter().map(of_component).collect(),
        })
    }

    /// Returns the problem with other data.
    pub(crate) fn with(&self, data: ProblemData) -> Self {
        let ProblemData { sigma, lambda, capacity, sources, conditions } = data;
        Self {
            mesh: self.mesh,
            boundary: Arc::clone(&self.boundary),
            sigma,
            lambda,
            capacity,
            sources,
            conditions,
            config: self.config,
            space: self.space.clone(),
            initial: self.initial.clone(),
            overlaps: self.overlaps.clone(),
            inner_facets: self.inner_facets.clone(),
            node_overlaps: self.node_overlaps.clone(),
            warnings: self.warnings.clone(),
            divided: self.divided.clone(),
        }
    }

    /// Returns values at the degrees of freedom as a component of a solution, for its functionals. If the
    /// mesh is distributed, it covers this rank's part, with cells of other ranks.
    pub fn component<'a>(&'a self, values: &'a [f64]) -> Component<'a> {
        let rule = tensor::rule(self.config.quadrature);
        Component { number: 0, form: self.form(0), space: self.space(), rule, values, ranks: None }
    }

    /// Returns the space, which is linear on simplices.
    fn on(&self) -> Result<Space<'_>, FemError> {
        Ok(Space::of(self.mesh, self.space())?)
    }

    /// Checks that points lie in the mesh. Collective if the mesh is distributed.
    ///
    /// # Errors
    /// The position of the first point that does not, with the reason.
    pub fn check_points(&self, points: &[[f64; 3]]) -> Result<(), (usize, FemError)> {
        if points.is_empty() {
            return Ok(());
        }
        let space = self.on().map_err(|error| (0, error))?;
        let found: Vec<Option<f64>> = space.locate(points).iter().map(|at| at.map(|_| 0.0)).collect();
        let found = match &self.divided {
            Some(divided) => divided.first_of(&found).map_err(|error| (0, error.into()))?,
            None => found,
        };
        match found.iter().position(Option::is_none) {
            Some(i) => Err((i, functionals::outside(&space, points[i]))),
            None => Ok(()),
        }
    }

    /// Returns whether any of `n` evenly spaced points of a line lies in the mesh. Collective if the mesh is
    /// distributed.
    ///
    /// # Errors
    /// [`FemError`] if the cells cannot be searched.
    pub fn meets_line(&self, from: [f64; 3], to: [f64; 3], n: usize) -> Result<bool, FemError> {
        let line = Line::new(from, to, n);
        let meets = self.on()?.locate(&line.points).iter().any(Option::is_some);
        match &self.divided {
            Some(divided) => Ok(divided.comm.any([meets])?[0]),
            None => Ok(meets),
        }
    }

    /// Returns the boundary facets of a region; `path` is the setting that names it. Collective if the mesh
    /// is distributed.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if it is no facet, with the tags or the extents of the mesh.
    pub fn facets(&self, region: impl Into<Region>, path: &[Key]) -> Result<Selected, SolveError> {
        region.into().facets(self.on_mesh(), &self.boundary, path)
    }

    /// Evaluates the data of the problem on the space. Chooses a preconditioner unless the settings name one:
    /// for a GPU that is open already, or for the devices present, and a CPU with `n_threads` threads.
    ///
    /// # Errors
    /// Data that are not finite, a component of the mesh without conditions, an unsupported preconditioner.
    pub fn weak_form(
        &self,
        config: &SolverConfig,
        opened: Option<&Cuda>,
        n_threads: usize,
    ) -> Result<WeakForm<'_>, SolveError> {
        self.weak_form_for(config, Circumstances::new(opened.is_some(), n_threads, Solves::One))
    }

    /// As [`Discretization::weak_form`], with a preconditioner for these circumstances.
    ///
    /// # Errors
    /// As [`Discretization::weak_form`].
    pub(crate) fn weak_form_for(
        &self,
        config: &SolverConfig,
        circumstances: Circumstances,
    ) -> Result<WeakForm<'_>, SolveError> {
        config.check()?;
        ranks::need_whole(self)?;
        ranks::refuse(config)?;
        let of_component = |space, component| TensorProblem::new(space, &self.form(component));
        let problems = match &self.space {
            Some(space) => (0..self.config.components).map(|k| of_component(space, k)).collect(),
            None => Ok(Vec::new()),
        }?;
        let boxed = problems.first().map(|problem| {
            move |options: &GmgOptions| part("box of cells", || Boxes::of(options, problem)).map(Some)
        });
        let boxed = boxed.as_ref().map(|boxed| boxed as &Boxed<'_>);
        let plan = Plan::of(config, self, boxed, circumstances)?;
        check_cells(&plan.config, &self.config, self.mesh.kind)?;
        let kind = match problems.is_empty() {
            true => Kind::Simplices(self.form(0)),
            false => Kind::Tensor { problems, rule: tensor::rule(self.config.quadrature) },
        };
        Ok(WeakForm { kind, plan })
    }

    /// Solves on the device of the settings, or on a GPU that is open or being opened. The data of the
    /// problem are evaluated before the GPU is waited for. If the GPU was an automatic choice and fails, the
    /// CPU takes over. Ranks of this process share the caller's GPU, or open those of the settings.
    ///
    /// # Errors
    /// [`SolveError`]; not converging is an outcome.
    pub fn solve(
        mut self,
        cpu: &Cpu,
        config: &SolverConfig,
        opening: Option<Opening>,
        stages: &mut Stages<'_>,
    ) -> Result<Solution<'m>, SolveError> {
        check_cells(config, &self.config, self.mesh.kind)?;
        if !matches!(config.ranks, Ranks::Of(_)) {
            ranks::need_whole(&self)?;
        }
        let is_verified = config.is_verified || contrast::is_high(&self)?;
        let config = &SolverConfig { is_verified, ..config.clone() };
        let unseen = unseen_sources(&self);
        self.warnings.extend(unseen);
        if config.ranks != Ranks::One {
            let opened = opening.map(Opening::wait).transpose()?;
            return ranks::solve(self, cpu, config, opened.as_ref(), stages);
        }
        let wait =
            |opening: Option<Opening>| part("waiting for the GPU", || opening.map(Opening::wait).transpose());
        if self.is_nonlinear() {
            return nonlinear::solve(self, cpu, config, wait(opening)?, stages);
        }
        let mut circumstances = Circumstances::new(opening.is_some(), cpu.threads(), Solves::One);
        let weak = self.weak_form_for(config, circumstances)?;
        let ahead = opening.as_ref().map(|opening| part("ahead of the GPU", || weak.ahead(cpu, opening)));
        let opened = wait(opening)?;
        let n = self.n_dofs() * self.config.components;
        let Choice { device, reason } = weak.plan.device(opened, n, cpu.threads())?;
        let (gpu, ahead) = match device {
            Chosen::Cuda(cuda) => (Some(config.device.with_overflow(&cuda)), ahead.unwrap_or_default()),
            Chosen::Cpu => (None, Ahead::default()),
        };
        let may_leave_gpu = config.device == DeviceChoice::Auto;
        let mut on = SolvingDevice { cpu, gpu, may_leave_gpu, reason, warnings: self.warnings.clone() };
        let mut solved = on.solve(&weak, ahead, None, stages)?;
        if let Solved::Slow(slow) = solved {
            circumstances.is_diagonal_slow = true;
            circumstances.is_open = on.gpu.is_some();
            let next = self.weak_form_for(config, circumstances)?;
            let (done, name) = (slow.outcome.iterations, next.config().preconditioner.name());
            let expected = weak.preconditioner_reason();
            on.warnings.push(format!(
                "{expected}; after {done} the solve went on with `preconditioner = \"{name}\"`"
            ));
            solved = on.solve(&next, Ahead::default(), Some(slow), stages)?;
        }
        drop(weak);
        match solved {
            Solved::Finished(finished) => Ok(Solution::new(self, *finished)),
            Solved::Slow(_) => unreachable!("multigrid has no patience"),
        }
    }
}

/// The device of a solve: a GPU, or the CPU, which also takes over if an automatically chosen GPU fails.
struct SolvingDevice<'c> {
    cpu: &'c Cpu,
    gpu: Option<Cuda>,
    may_leave_gpu: bool,
    /// The reason for the device.
    reason: String,
    warnings: Vec<String>,
}

impl SolvingDevice<'_> {
    fn solve<'w>(
        &mut self,
        weak: &'w WeakForm<'_>,
        ahead: Ahead<'w, Cuda>,
        before: Option<Slow>,
        stages: &mut Stages<'_>,
    ) -> Result<Solved, SolveError> {
        if let Some(gpu) = &self.gpu {
            match self.solve_on(gpu, weak, ahead, before.as_ref(), stages) {
                Err(error) if self.may_leave_gpu && error.is_device_trouble() => {
                    self.reason = error.to_string();
                    self.warnings.push(format!("solved on the CPU: {error}"));
                    self.gpu = None;
                }
                solved => return solved,
            }
        }
        self.solve_on(self.cpu, weak, Ahead::default(), before.as_ref(), stages)
    }

    /// Solves from zero, or from the iterate `before` of another preconditioner.
    fn solve_on<'w, D: OperatorDevice>(
        &self,
        device: &D,
        weak: &'w WeakForm<'_>,
        ahead: Ahead<'w, D>,
        before: Option<&Slow>,
        stages: &mut Stages<'_>,
    ) -> Result<Solved, SolveError> {
        let reasons = [&self.reason, weak.preconditioner_reason()];
        let system = weak.system_with((self.cpu, device), ahead, stages)?;
        let mut config = weak.config().clone();
        stages.begin(Stage::Solve)?;
        let mut w = match before {
            Some(before) => {
                config.max_iterations = config.max_iterations.saturating_sub(before.outcome.iterations);
                config.time_limit = config.time_limit.map(|limit| limit.saturating_sub(before.time));
                Buffer::from_host(device, &before.iterate).map_err(LinalgError::from)?
            }
            None => system.start()?,
        };
        let patience = weak.plan.patience.filter(|&patience| patience < config.max_iterations);
        config.max_iterations = patience.unwrap_or(config.max_iterations);
        let begun = Instant::now();
        let mut outcome = system.iterate(&config, &mut w, stages)?;
        if patience.is_some() && outcome.stop == Stop::MaxIterations {
            let iterate = w.to_host().map_err(LinalgError::from)?;
            return Ok(Solved::Slow(Slow { iterate, outcome, time: begun.elapsed() }));
        }
        if let Some(before) = before {
            outcome = outcome.after(&before.outcome);
        }
        let found = system.found(&w, outcome, weak.config())?.after(&self.warnings);
        Ok(Solved::Finished(Box::new(Finished::new(device, found, reasons))))
    }
}

/// The end of the iterations with a preconditioner.
enum Solved {
    /// The solution.
    Finished(Box<Finished>),
    /// The diagonal has cost as much as a solve by multigrid, and more is to come.
    Slow(Slow),
}

/// Iterations that another preconditioner continues.
struct Slow {
    iterate: Vec<f64>,
    outcome: CgOutcome,
    /// The time that they took.
    time: Duration,
}

/// The data of a problem evaluated on its space, with the chosen preconditioner, from which linear systems are made.
#[derive(Debug)]
pub struct WeakForm<'d> {
    kind: Kind<'d>,
    plan: Plan,
}

#[derive(Debug)]
enum Kind<'d> {
    Simplices(Form<'d>),
    Tensor {
        /// Of each component.
        problems: Vec<TensorProblem<'d>>,
        rule: CellRule,
    },
}

impl WeakForm<'_> {
    /// Returns the settings of the solve, with the preconditioner that was chosen.
    pub fn config(&self) -> &SolverConfig {
        &self.plan.config
    }

    /// Returns the reason for the preconditioner.
    pub fn preconditioner_reason(&self) -> &str {
        &self.plan.reason
    }

    /// Makes the linear system and its preconditioner on a device, with the CPU as host.
    ///
    /// # Errors
    /// [`SolveError`] if the operator or the preconditioner cannot be set up.
    pub fn system<D: OperatorDevice>(
        &self,
        (cpu, device): (&Cpu, &D),
        stages: &mut Stages<'_>,
    ) -> Result<LinearSystem<'_, D>, SolveError> {
        device.system(cpu, self, stages)
    }

    /// Computes what a GPU will need until it is open.
    fn ahead(&self, cpu: &Cpu, opening: &Opening) -> Ahead<'_, Cuda> {
        match &self.kind {
            Kind::Tensor { problems, rule }
                if !self.plan.has_matrix && self.plan.lack_of_gpus().is_none() =>
            {
                Ahead::new(cpu, opening, self.config(), problems, *rule)
            }
            _ => Ahead::default(),
        }
    }

    pub(crate) fn system_with<'a, D: OperatorDevice>(
        &'a self,
        (cpu, device): (&Cpu, &D),
        ahead: Ahead<'a, D>,
        stages: &mut Stages<'_>,
    ) -> Result<LinearSystem<'a, D>, SolveError> {
        match &self.kind {
            Kind::Simplices(form) => of_simplices(device, self.config(), form, stages),
            Kind::Tensor { problems, rule } => {
                let on = OnCells { cpu, device, rule: *rule };
                stages.begin(Stage::Assemble)?;
                match self.plan.has_matrix {
                    true => on.with_matrix(self.config(), &problems[0], stages),
                    false => on.without_matrix(&self.plan, problems, ahead, stages),
                }
            }
        }
    }

    /// Makes the operator of a problem of one component and its preconditioner, for many right sides.
    ///
    /// # Errors
    /// [`SolveError::Setting`] for a lumped mass matrix of elements other than linear ones, or if there are
    /// Dirichlet conditions; else as [`WeakForm::system`].
    pub fn operators<D: OperatorDevice>(
        &self,
        (cpu, device): (&Cpu, &D),
        mass: MassMatrix,
        stages: &mut Stages<'_>,
    ) -> Result<PreconditionedOperator<D>, SolveError> {
        device.operators(cpu, self, mass, stages)
    }

    pub(crate) fn operators_on<D: OperatorDevice>(
        &self,
        (cpu, device): (&Cpu, &D),
        mass: MassMatrix,
        stages: &mut Stages<'_>,
    ) -> Result<PreconditionedOperator<D>, SolveError> {
        let natural =
            |form: &&Form<'_>| form.conditions.iter().all(|given| given.condition.given_value().is_none());
        let form = match &self.kind {
            Kind::Simplices(form) => Some(form),
            Kind::Tensor { .. } => None,
        };
        if mass == MassMatrix::Lumped && form.filter(natural).is_none() {
            let message = "a reaction is lumped with linear elements and natural boundary conditions";
            return Err(SolveError::setting(&["mass".into()], message));
        }
        let Some(form) = form else {
            return Ok(self.system((cpu, device), stages)?.into());
        };
        let mut matrix = self.matrix(device, stages)?;
        if mass == MassMatrix::Lumped {
            lump_reaction(device, form, &mut matrix)?;
        }
        stages.begin(Stage::Setup)?;
        let rows = RowsOfProblem { mesh: Some(form.mesh), ..RowsOfProblem::all(matrix.n_rows()) };
        PreconditionedOperator::of_matrix(self.config(), OwnedRows::whole(matrix)?, &rows)
    }

    /// Assembles the matrix of one component on a device, without a right side.
    ///
    /// # Errors
    /// Errors of assembly.
    pub(crate) fn matrix<D: OperatorDevice>(
        &self,
        device: &D,
        stages: &mut Stages<'_>,
    ) -> Result<Csr<f64, D>, SolveError> {
        stages.begin(Stage::Assemble)?;
        match &self.kind {
            Kind::Simplices(form) => {
                let assembled = stages.with_fractions(|progress| assemble::<f64, D>(device, form, progress));
                Ok(assembled?.into_parts().0)
            }
            Kind::Tensor { problems, rule } => {
                Ok(tensor::assembled(device, *rule, &problems[0], stages)?.matrix)
            }
        }
    }
}

/// The system of linear elements.
fn of_simplices<'d, D: OperatorDevice>(
    device: &D,
    config: &SolverConfig,
    form: &Form<'d>,
    stages: &mut Stages<'_>,
) -> Result<LinearSystem<'d, D>, SolveError> {
    stages.begin(Stage::Assemble)?;
    let system = stages.with_fractions(|progress| assemble::<f64, D>(device, form, progress))?;
    stages.begin(Stage::Setup)?;
    let (matrix, system) = system.into_parts();
    let right = RightSide::new(device, Space::new(form.mesh, 1)?, vec![system])?;
    LinearSystem::of_whole_matrix(config, matrix, Some(form.mesh), right)
}

/// Replaces the matrix of the reaction in a matrix on its pattern by that with its row sums on the diagonal.
fn lump_reaction<D: OperatorDevice>(
    device: &D,
    form: &Form<'_>,
    matrix: &mut Csr<f64, D>,
) -> Result<(), SolveError> {
    let zero = &Coefficient::ZERO;
    let reaction = Form { sigma: zero, source: zero, conditions: &[], ..*form };
    let mut reaction = assemble_matrix::<f64, D>(device, &reaction)?;
    Ok(nonlinear::lump_within(matrix, &mut reaction)?)
}
