//! Carries a case out: mesh, check, assembly, solve, results.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use femtile_amg::{Amg, AmgKernels, Convert, LevelShape};
use femtile_device::{Buffer, Cpu, Cuda, MemoryUse, Scalar};
use femtile_fem::{AssemblyKernels, BoundaryCondition, Coefficient, Form, System, assemble};
use femtile_linalg::Preconditioner;
use femtile_linalg::comm::Alone;
use femtile_linalg::krylov::cg::{CgConfig, CgKernels, CgOutcome, ConjugateGradient, make_room};
use femtile_linalg::krylov::{Monitor, Stop};
use femtile_linalg::precondition::Diagonal;
use femtile_linalg::sparse::csr::CsrKernels;
use femtile_mesh::check::{BoundaryFacets, CheckConfig, CheckReport, boundary_facets, check};
use femtile_mesh::{Mesh, refine};

use crate::boundary::conditions;
use crate::coefficient::coefficient;
use crate::device::{Choice, Chosen, Request, is_out_of_memory};
use crate::file::CycleName;
use crate::file::{AmgSection, EquationKind, LevelPrecision, PreconditionerName, SolverSection, Value};
use crate::functional::{Ready, evaluate, prepare};
use crate::mesh_source::mesh_of;
use crate::report::{LevelReport, MemoryReport, MeshReport, SpaceReport};
use crate::{
    Case, CaseError, Progress, Report, SolveReport, Stage, Timings, diffusion, memory, output, plot,
};

/// Carries out a case and writes its results, also when the solve ended without converging.
///
/// # Errors
/// Everything that [`CaseError`] names. What can be known before the solve is refused before it: a GPU that is not
/// there, a folder that cannot be written to, a point outside the mesh, an expression that does not parse.
pub fn run(case: &Case, progress: &mut dyn Progress) -> Result<Report, CaseError> {
    case.check()?;
    let opened = Request::of(case)?.open()?;
    run_opened(case, opened, progress)
}

/// Carries out a case on a GPU that is open already, whatever the case says of its device.
///
/// Where the case says `auto` and the GPU has not the memory, the CPU solves it and a warning says so.
///
/// # Errors
/// As [`run`].
pub fn run_on(case: &Case, device: &Cuda, progress: &mut dyn Progress) -> Result<Report, CaseError> {
    case.check()?;
    run_opened(case, Some(device.clone()), progress)
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
    let mut clock = Clock { progress, begun: Instant::now() };
    if case.file.equation.kind == EquationKind::Diffusion {
        return diffusion::run(cpu, case, request, opened, &mut clock);
    }
    let mut timings = Timings::default();
    let (mesh, checked) = checked_mesh(case, &mut clock, &mut timings)?;
    let mut warnings = checked.warnings.clone();

    clock.begin(Stage::Space);
    let problem = Prepared::new(case, &mesh, &mut warnings)?;
    let Choice { device, mut reason } = request.choose(opened, mesh.n_nodes(), cpu.threads());
    timings.space = clock.seconds();
    let mut stage = Solving { case, mesh: &mesh, checked: &checked, problem: &problem, warnings, timings };
    if let Chosen::Cuda(cuda) = device {
        match stage.solve_on(&request.with_overflow(&cuda), &reason, &mut clock) {
            Err(error) if request == Request::Auto && is_out_of_memory(&error) => {
                reason = error.to_string();
                stage.warnings.push(format!("solved on the CPU: {reason}"));
            }
            done => return done,
        }
    }
    stage.solve_on(cpu, &reason, &mut clock)
}

/// Times the stages and passes them on.
pub(crate) struct Clock<'a> {
    pub progress: &'a mut dyn Progress,
    begun: Instant,
}

impl Clock<'_> {
    /// Starts the clock of a stage, and tells of it.
    pub fn begin(&mut self, stage: Stage) {
        self.begun = Instant::now();
        self.progress.begin(stage);
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
        let form = self.problem.form(mesh);
        let mut timings = self.timings.clone();
        clock.begin(Stage::Assemble);
        let shared = Mutex::new(&mut *clock);
        let system = assemble::<f64, D>(device, &form, &|fraction| {
            if let Ok(mut clock) = shared.try_lock() {
                clock.progress.fraction(fraction);
            }
        })?;
        timings.assemble = clock.seconds();
        let mut warnings = self.warnings.clone();
        if system.imbalance > 1e-9 {
            warnings.push(format!(
                "source and flux of the pure Neumann problem balance up to {:.1e} of their size; the rest was projected away",
                system.imbalance
            ));
        }

        let Solved { solution, outcome, levels } = solve(device, case, mesh, system, clock, &mut timings)?;
        warn_of_outcome(case, &outcome, &mut warnings);
        let used = device.memory_use();
        warnings.extend(used.and_then(warning_of_overflow));

        clock.begin(Stage::Write);
        let functionals = evaluate(&self.problem.functionals, &form, &solution)?;
        let mut report = Report {
            mesh: MeshReport {
                n_nodes: mesh.n_nodes(),
                n_cells: mesh.n_cells(),
                n_orphans: self.checked.n_orphans,
                volume: self.checked.volume,
            },
            space: SpaceReport { n_dofs: solution.len() },
            solve: SolveReport {
                iterations: outcome.iterations,
                stop: outcome.stop,
                relative_residual: outcome.relative_residual,
                true_relative_residual: outcome.true_relative_residual,
                residuals: outcome.residuals,
                levels,
            },
            time: None,
            functionals,
            timings_s: timings,
            memory_bytes: MemoryReport::of_device(used),
            device: device.description(),
            device_reason: reason.into(),
            kernel_launches: device.kernel_launches(),
            warnings,
            citations: citations(case),
            version: env!("CARGO_PKG_VERSION").into(),
        };
        write_results(case, mesh, solution, &report)?;
        report.timings_s.write = clock.seconds();
        report.memory_bytes.peak = memory::peak_bytes();
        output::write_report(&case.file.output.directory.join("report.json"), &report)?;
        Ok(report)
    }
}

fn checked_mesh(
    case: &Case,
    clock: &mut Clock<'_>,
    timings: &mut Timings,
) -> Result<(Mesh, CheckReport), CaseError> {
    clock.begin(Stage::Read);
    let mut mesh = mesh_of(case)?;
    timings.read = clock.seconds();
    clock.begin(Stage::Check);
    let config = CheckConfig { merge_duplicates: case.file.mesh.merge, ..CheckConfig::default() };
    let mut report = check(&mut mesh, &config)?;
    for _ in 0..case.file.mesh.refine {
        mesh = refine::uniform(&mesh)?;
    }
    if case.file.mesh.refine > 0 {
        let CheckReport { n_orphans, ref warnings, .. } = report;
        report = CheckReport { warnings: warnings.clone(), ..check(&mut mesh, &CheckConfig::default())? };
        report.n_orphans = n_orphans;
    }
    timings.check = clock.seconds();
    Ok((mesh, report))
}

/// All that a case says about its problem, in terms of the mesh.
struct Prepared {
    boundary: BoundaryFacets,
    sigma: Coefficient,
    lambda: Coefficient,
    source: Coefficient,
    conditions: Vec<BoundaryCondition>,
    functionals: Vec<Ready>,
}

impl Prepared {
    fn new(case: &Case, mesh: &Mesh, warnings: &mut Vec<String>) -> Result<Self, CaseError> {
        let equation = &case.file.equation;
        let of = |key: &str, value: &Value| coefficient(case, mesh, value, &["equation".into(), key.into()]);
        let scalar = |key: &str, value| {
            let found = of(key, value)?;
            let wrong =
                || case.wrong(&["equation".into(), key.into()], "a number is needed here, not a tensor");
            if found.is_scalar() { Ok(found) } else { Err(wrong()) }
        };
        let (sigma, lambda) = (of("sigma", &equation.sigma)?, scalar("lambda", &equation.lambda)?);
        let source = scalar("source", &equation.source)?;
        let boundary = boundary_facets(mesh);
        let conditions = conditions(case, mesh, &boundary, warnings)?;
        let functionals = prepare(case, mesh)?;
        Ok(Self { boundary, sigma, lambda, source, conditions, functionals })
    }

    fn form<'a>(&'a self, mesh: &'a Mesh) -> Form<'a> {
        let Self { boundary, sigma, lambda, source, conditions, .. } = self;
        Form { mesh, boundary, sigma, lambda, source, conditions }
    }
}

/// The papers behind what was used.
fn citations(case: &Case) -> Vec<String> {
    let multigrid = if case.file.solver.preconditioner == PreconditionerName::Amg {
        ["vanek1996", "fu2014"].as_slice()
    } else {
        &[]
    };
    let options = case.file.solver.amg.as_ref();
    let is_k = options.is_some_and(|options| options.cycle == CycleName::K);
    let flexible = if is_k { ["notay2000", "notay2010"].as_slice() } else { &[] };
    ["hestenes1952"].iter().chain(multigrid).chain(flexible).map(|key| (*key).into()).collect()
}

/// Passes iterations on and stops when the user asks.
struct Watch<'a> {
    progress: &'a mut dyn Progress,
    tolerance: f64,
}

impl Monitor for Watch<'_> {
    fn iteration(&mut self, iteration: usize, relative_residual: f64) -> ControlFlow<Stop> {
        self.progress.iteration(iteration, relative_residual, self.tolerance);
        if self.progress.is_interrupted() {
            ControlFlow::Break(Stop::Interrupted)
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// A device that cases are solved on.
trait SolveDevice:
    AssemblyKernels<f64>
    + CgKernels<f64>
    + CsrKernels<f64>
    + AmgKernels<f32>
    + AmgKernels<f64>
    + Convert<f64, f32>
    + Convert<f32, f64>
    + Convert<f64, f64>
{
}

impl<D> SolveDevice for D where
    D: AssemblyKernels<f64>
        + CgKernels<f64>
        + CsrKernels<f64>
        + AmgKernels<f32>
        + AmgKernels<f64>
        + Convert<f64, f32>
        + Convert<f32, f64>
        + Convert<f64, f64>
{
}

struct Solved {
    solution: Vec<f64>,
    outcome: CgOutcome,
    levels: Vec<LevelReport>,
}

/// A preconditioner and what there is to tell of it.
type Preconditioning<D> = (Box<dyn Preconditioner<f64, D>>, Vec<LevelReport>);

fn solve<D: SolveDevice>(
    device: &D,
    case: &Case,
    mesh: &Mesh,
    mut system: System<f64, D>,
    clock: &mut Clock<'_>,
    timings: &mut Timings,
) -> Result<Solved, CaseError> {
    let solver = &case.file.solver;
    clock.begin(Stage::Setup);
    let n = system.rhs.len();
    let (preconditioner, levels) = preconditioner(device, solver, &mut system)?;
    let mut x = Buffer::zeros(device, n)?;
    timings.setup = clock.seconds();

    clock.begin(Stage::Solve);
    let config = CgConfig {
        tolerance: solver.tolerance,
        max_iterations: solver.max_iterations,
        time_limit: solver.time_limit_s.map(Duration::from_secs_f64),
        ..CgConfig::default()
    };
    let mut watch = Watch { progress: &mut *clock.progress, tolerance: solver.tolerance };
    let method = ConjugateGradient::new(config);
    let (a, m, b) = (&system.matrix, preconditioner.as_ref(), &system.rhs);
    let outcome = method.solve(&mut x, a, m, b, &Alone, &mut watch)?;
    timings.solve = clock.seconds();
    Ok(Solved { solution: system.solution(mesh, &x)?, outcome, levels })
}

/// Multigrid with levels in the precision `H`.
fn multigrid<H: Scalar, D>(
    options: &AmgSection,
    system: &mut System<f64, D>,
) -> Result<Preconditioning<D>, CaseError>
where
    D: SolveDevice + AmgKernels<H> + Convert<f64, H> + Convert<H, f64>,
{
    let amg = Amg::<H, D>::in_room_of(&mut system.matrix, None, &options.config())?;
    let level = |shape: &LevelShape| LevelReport {
        n_rows: shape.n_rows,
        n_nonzeros: shape.n_nonzeros,
        n_patches: Some(shape.n_patches).filter(|n| *n > 0),
    };
    let levels = amg.hierarchy().shapes().iter().map(level).collect();
    Ok((Box::new(amg), levels))
}

fn preconditioner<D: SolveDevice>(
    device: &D,
    solver: &SolverSection,
    system: &mut System<f64, D>,
) -> Result<Preconditioning<D>, CaseError> {
    if solver.preconditioner != PreconditionerName::Amg {
        make_room(&mut system.matrix)?;
    }
    Ok(match solver.preconditioner {
        PreconditionerName::None => (Box::new(Diagonal::identity(device, system.rhs.len())?), Vec::new()),
        PreconditionerName::Amg => {
            let options = solver.amg.clone().unwrap_or_default();
            match options.precision {
                LevelPrecision::Single => multigrid::<f32, D>(&options, system)?,
                LevelPrecision::Double => multigrid::<f64, D>(&options, system)?,
            }
        }
        PreconditionerName::Jacobi | PreconditionerName::Gmg => {
            (Box::new(Diagonal::new(&system.matrix)?), Vec::new())
        }
    })
}

/// What to say of arrays that found no room in the memory of the GPU.
fn warning_of_overflow(used: MemoryUse) -> Option<String> {
    let MemoryUse { near_peak, far_peak, .. } = used;
    let gigabytes = |bytes: usize| bytes as f64 * 1e-9;
    (far_peak > 0).then(|| {
        format!(
            "the memory of the GPU was too small: {:.2} GB went to the host's, which the GPU reads slowly, beside {:.2} GB \
             in its own; where most of it does, `cpu` is faster",
            gigabytes(far_peak),
            gigabytes(near_peak)
        )
    })
}

fn warn_of_outcome(case: &Case, outcome: &CgOutcome, warnings: &mut Vec<String>) {
    if outcome.stop != Stop::Converged {
        warnings.push(format!(
            "the solve {} (‖r‖/‖b‖ = {:.2e} after {} iterations)",
            outcome.stop, outcome.relative_residual, outcome.iterations
        ));
    } else if outcome.true_relative_residual > 10.0 * case.file.solver.tolerance {
        warnings.push(format!(
            "rounding keeps the true residual at {:.1e}, above the tolerance {:.1e}",
            outcome.true_relative_residual, case.file.solver.tolerance
        ));
    }
}

fn write_results(case: &Case, mesh: &Mesh, solution: Vec<f64>, report: &Report) -> Result<(), CaseError> {
    let output = &case.file.output;
    if output.vtu {
        output::write_solution(case, mesh, solution)?;
    }
    if output.plot {
        let path = output.directory.join("residuals.svg");
        plot::save_residual_plot(&path, &report.solve.residuals, case.file.solver.tolerance)?;
    }
    Ok(())
}
