//! Carries a case out: mesh, check, assembly, solve, results.

use std::sync::Mutex;
use std::time::Instant;

use femtile_device::{Cpu, Cuda};
use femtile_fem::{BoundaryCondition, Coefficient, FemError, Form, assemble, functionals};
use femtile_mesh::check::{
    BoundaryFacets, CheckConfig, CheckReport, boundary_facets, check, check_interruptible,
};
use femtile_mesh::{Mesh, refine};

use crate::boundary::{check_data, conditions};
use crate::coefficient::{coefficient, of_component, scalar};
use crate::device::{Choice, Chosen, Request};
use crate::file::EquationKind;
use crate::finish::{Finished, warning_of_imbalance};
use crate::functional::{self, Kind, Ready, evaluate, prepare};
use crate::high_order::{self, check_cells};
use crate::mesh_source::{self, check_config, mesh_of};
use crate::placed::placed;
use crate::report::{MeshReport, SpaceReport};
use crate::solve::{SolveDevice, preconditioner, solve, without_constants};
use crate::{Case, CaseError, Progress, Report, Stage, Timings, diffusion, output};

/// Carries out a case and writes its results, also when the solve ended without converging.
///
/// # Errors
/// Everything that [`CaseError`] names. What can be known before the solve is refused before it: a GPU that is not
/// there, a folder that cannot be written to, a point outside the mesh, an expression that does not parse.
pub fn run(case: &Case, progress: &mut dyn Progress) -> Result<Report, CaseError> {
    let mut run = || {
        case.check()?;
        let opened = Request::of(case)?.open()?;
        run_opened(case, opened, progress)
    };
    run().map_err(|error| placed(case, error))
}

/// Carries out a case on a GPU that is open already, whatever the case says of its device.
///
/// Where the case says `auto` and the GPU fails or has not the memory, the CPU solves it and a warning says so.
///
/// # Errors
/// As [`run`].
pub fn run_on(case: &Case, device: &Cuda, progress: &mut dyn Progress) -> Result<Report, CaseError> {
    case.check()?;
    run_opened(case, Some(device.clone()), progress).map_err(|error| placed(case, error))
}

fn run_opened(case: &Case, opened: Option<Cuda>, progress: &mut dyn Progress) -> Result<Report, CaseError> {
    let request = Request::of(case)?;
    let cpu = Cpu::new(case.file.solver.threads)?;
    output::prepare(case)?;
    cpu.install(|| run_in_pool(&cpu, case, request, opened, progress))
}

fn run_in_pool(
    cpu: &Cpu,
    case: &Case,
    request: Request,
    opened: Option<Cuda>,
    progress: &mut dyn Progress,
) -> Result<Report, CaseError> {
    let mut clock = Clock::new(progress);
    if case.file.equation.kind == EquationKind::Diffusion {
        return diffusion::run(cpu, case, request, opened, &mut clock);
    }
    let mut timings = Timings::default();
    let (mesh, checked) = checked_mesh(case, opened.is_some(), &mut clock, &mut timings)?;
    check_cells(case, request, mesh.kind)?;
    if high_order::is_for(mesh.kind) {
        return high_order::run(cpu, case, (&mesh, &checked), (request, opened), &mut clock, timings);
    }
    let mut warnings = checked.warnings.clone();

    clock.begin(Stage::Space)?;
    let zeros = vec![0.0; mesh.n_nodes()];
    let value_at = |point| functionals::value_at(&mesh, &zeros, point);
    let problem = Prepared::new(case, &mesh, &mut warnings, &value_at)?;
    drop(zeros);
    let Choice { device, mut reason } = choose(case, request, opened, mesh.n_nodes(), cpu.threads())?;
    timings.space = clock.seconds();
    let mut stage = Solving { case, mesh: &mesh, checked: &checked, problem: &problem, warnings, timings };
    if let Chosen::Cuda(cuda) = device {
        match stage.solve_on(&request.with_overflow(&cuda), &reason, &mut clock) {
            Err(error) if request == Request::Auto && error.is_device_trouble() => {
                reason = error.to_string();
                stage.warnings.push(format!("solved on the CPU: {reason}"));
            }
            done => return done,
        }
    }
    stage.solve_on(cpu, &reason, &mut clock)
}

/// The device for a problem of `n` unknowns; the processor for what GPUs do not carry out.
pub(crate) fn choose(
    case: &Case,
    request: Request,
    opened: Option<Cuda>,
    n: usize,
    n_threads: usize,
) -> Result<Choice, CaseError> {
    let method = case.file.solver.method;
    if method.is_for_gpus() || request == Request::Cpu {
        return Ok(request.choose(opened, n, n_threads));
    }
    match opened {
        Some(_) => Err(case.needs_cpu()),
        None => Ok(Choice { device: Chosen::Cpu, reason: format!("{} runs on CPUs only", method.name()) }),
    }
}

/// Times the stages and passes them on.
pub(crate) struct Clock<'a> {
    pub progress: &'a mut dyn Progress,
    begun: Instant,
    stage: Stage,
    /// Whether the user had asked for a stop when results began to be written, which then are those of that moment.
    stopped: bool,
}

impl<'a> Clock<'a> {
    fn new(progress: &'a mut dyn Progress) -> Self {
        Self { progress, begun: Instant::now(), stage: Stage::Read, stopped: false }
    }

    /// Starts the clock of a stage, and tells of it; the user may have asked for a stop in the one before.
    pub fn begin(&mut self, stage: Stage) -> Result<(), CaseError> {
        match stage {
            // A solve that was stopped leaves something to write.
            Stage::Write => self.stopped = self.progress.is_interrupted(),
            _ => self.go_on()?,
        }
        (self.begun, self.stage) = (Instant::now(), stage);
        self.progress.begin(stage);
        Ok(())
    }

    /// Fails where the user asks for a stop of what is being done.
    pub fn go_on(&self) -> Result<(), CaseError> {
        match self.progress.is_interrupted() && !self.stopped {
            true => Err(CaseError::Interrupted { stage: self.stage }),
            false => Ok(()),
        }
    }

    /// Does work that says which fraction of the stage is done, from any thread.
    pub fn with_fractions<R>(&mut self, work: impl FnOnce(&(dyn Fn(f64) + Sync)) -> R) -> R {
        let shared = Mutex::new(&mut *self.progress);
        work(&|fraction| {
            if let Ok(mut progress) = shared.try_lock() {
                progress.fraction(fraction);
            }
        })
    }

    /// Does work that asks now and then, from any thread, whether to end.
    pub fn interruptible<R>(&mut self, work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> R) -> R {
        let shared = Mutex::new(&mut *self.progress);
        work(&|| shared.try_lock().is_ok_and(|progress| progress.is_interrupted()))
    }

    /// Seconds since the stage began.
    pub fn seconds(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }
}

/// A case whose mesh and problem are ready.
struct Solving<'a> {
    case: &'a Case,
    mesh: &'a Mesh,
    checked: &'a CheckReport,
    problem: &'a Prepared,
    warnings: Vec<String>,
    timings: Timings,
}

impl Solving<'_> {
    fn solve_on<D>(&mut self, device: &D, reason: &str, clock: &mut Clock<'_>) -> Result<Report, CaseError>
    where
        D: SolveDevice,
    {
        let (case, mesh) = (self.case, self.mesh);
        let form = self.problem.form(mesh, 0);
        let mut timings = self.timings.clone();
        clock.begin(Stage::Assemble)?;
        let mut system = clock.with_fractions(|progress| assemble::<f64, D>(device, &form, progress))?;
        timings.assemble = clock.seconds();
        let mut warnings = self.warnings.clone();
        warnings.extend(warning_of_imbalance(system.imbalance));

        clock.begin(Stage::Setup)?;
        let solver = &case.file.solver;
        let made = preconditioner(device, solver, &mut system.matrix, &mut warnings)?;
        let (preconditioner, levels) =
            without_constants(device, made, system.rhs.len(), system.is_pure_neumann)?;
        let (a, m, b) = (&system.matrix, preconditioner.as_ref(), &system.rhs);
        let (w, outcome) = solve(solver, a, m, b, clock, &mut timings)?;
        let solution = system.solution(mesh, &w)?;

        clock.begin(Stage::Write)?;
        let value = |kind: &Kind, _| functional::value(kind, &form, &solution);
        let finished = Finished {
            mesh: MeshReport::new(mesh, self.checked),
            space: SpaceReport { n_dofs: solution.len(), degree: Some(1), components: 1 },
            outcome,
            levels,
            functionals: evaluate(&self.problem.functionals, value)?,
            timings,
            warnings,
            citations: Vec::new(),
        };
        let report = finished.report(case, device, reason);
        output::write_results(case, report, clock, |path| output::write_solution(path, mesh, solution))
    }
}

fn checked_mesh(
    case: &Case,
    has_gpu: bool,
    clock: &mut Clock<'_>,
    timings: &mut Timings,
) -> Result<(Mesh, CheckReport), CaseError> {
    clock.begin(Stage::Read)?;
    let mut mesh = mesh_of(case, has_gpu)?;
    timings.read = clock.seconds();
    clock.begin(Stage::Check)?;
    let config = check_config(case);
    let found = clock.interruptible(|stop| check_interruptible(&mut mesh, &config, Some(stop)));
    clock.go_on()?;
    let mut report = found.map_err(|error| mesh_source::placed(case, error))?;
    for _ in 0..case.file.mesh.refine {
        let finer = clock.interruptible(|stop| refine::uniform_interruptible(&mesh, Some(stop)));
        clock.go_on()?;
        mesh = finer?;
    }
    if case.file.mesh.refine > 0 {
        let CheckReport { n_orphans, ref warnings, .. } = report;
        let config = CheckConfig { merge_duplicates: false, ..config };
        report = CheckReport { warnings: warnings.clone(), ..check(&mut mesh, &config)? };
        report.n_orphans = n_orphans;
    }
    timings.check = clock.seconds();
    Ok((mesh, report))
}

/// All that a case says about its problem, in terms of the mesh.
pub(crate) struct Prepared {
    boundary: BoundaryFacets,
    sigma: Coefficient,
    lambda: Coefficient,
    /// For each component of u.
    sources: Vec<Coefficient>,
    conditions: Vec<Vec<BoundaryCondition>>,
    pub functionals: Vec<Ready>,
}

impl Prepared {
    /// `value_at` says of each point that a functional names whether it lies in the mesh.
    pub fn new(
        case: &Case,
        mesh: &Mesh,
        warnings: &mut Vec<String>,
        value_at: &dyn Fn([f64; 3]) -> Result<f64, FemError>,
    ) -> Result<Self, CaseError> {
        check_data(case, warnings)?;
        let equation = &case.file.equation;
        let place = |key: &str| ["equation".into(), key.into()];
        let sigma = coefficient(case, mesh, &equation.sigma, &place("sigma"))?;
        let lambda = scalar(case, mesh, &equation.lambda, &place("lambda"))?;
        let source = |component| of_component(case, mesh, &equation.source, component, &place("source"));
        let sources = (0..case.file.space.components).map(source).collect::<Result<_, _>>()?;
        let boundary = boundary_facets(mesh);
        let conditions = conditions(case, mesh, &boundary, warnings)?;
        let functionals = prepare(case, value_at)?;
        Ok(Self { boundary, sigma, lambda, sources, conditions, functionals })
    }

    /// The form of a component on its mesh.
    pub fn form<'a>(&'a self, mesh: &'a Mesh, component: usize) -> Form<'a> {
        let Self { boundary, sigma, lambda, sources, conditions, .. } = self;
        let (source, conditions) = (&sources[component], &conditions[component]);
        Form { mesh, boundary, sigma, lambda, source, conditions }
    }
}
