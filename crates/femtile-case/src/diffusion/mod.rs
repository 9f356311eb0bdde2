//! Cases of u_t = ∇·(D∇u) + c·∇u + ru + f on a grid: from the file to a field at the end of time.

mod check;
mod functional;
mod problem;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use femtile_device::{Cpu, Cuda, Scalar};
use femtile_linalg::krylov::Stop;
use femtile_mesh::io::vti;
use femtile_solve::{Choice, Chosen, DeviceChoice, Progress, Stage, Stages};
use femtile_time::TimeError;
use femtile_time::adi::{Adi, AdiKernels, AdiOutcome, AdiStop, CellPeclet, Grid, Operator, StepMonitor};

use crate::file::{Generator, Precision};
use crate::output::{GRID_SOLUTION, write_results};
use crate::report::{MemoryReport, MeshReport, SpaceReport};
use crate::{Case, CaseError, Report, SolveReport, TimeReport, Timings, memory};
use problem::Prepared;

pub(crate) use check::check;

/// Carries a case out on the device that it asks for or that serves it best.
pub(crate) fn run(
    cpu: &Cpu,
    case: &Case,
    requested: DeviceChoice,
    opened: Option<Cuda>,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    stages.begin(Stage::Space)?;
    if let Some(n_nodes) = case.file.mesh.generate.as_ref().and_then(Generator::n_grid_nodes) {
        memory::check_grid(case, n_nodes, opened.is_some())?;
    }
    let prepared = Prepared::new(case)?;
    let Choice { device, mut reason } = requested.choose(opened, prepared.grid.n_nodes(), cpu.threads());
    let mut warnings = case.warnings().to_vec();
    warnings.extend_from_slice(&prepared.warnings);
    if let Chosen::Cuda(cuda) = device {
        match in_precision(&cuda, case, &prepared, stages) {
            Err(error) if requested == DeviceChoice::Auto && error.is_device_trouble() => {
                reason = error.to_string();
                warnings.push(format!("solved on the CPU: {reason}"));
            }
            done => return finish(case, &prepared, done?, &reason, warnings, stages),
        }
    }
    let done = in_precision(cpu, case, &prepared, stages)?;
    finish(case, &prepared, done, &reason, warnings, stages)
}

/// What a run gives.
struct Done {
    u: Vec<f64>,
    outcome: AdiOutcome,
    device: String,
    kernel_launches: u64,
    warnings: Vec<String>,
}

fn in_precision<D>(
    device: &D,
    case: &Case,
    prepared: &Prepared,
    stages: &mut Stages<'_>,
) -> Result<Done, CaseError>
where
    D: AdiKernels<f64> + AdiKernels<f32>,
{
    match case.file.solver.precision {
        Precision::F32 => advance::<f32, D>(device, case, prepared, stages),
        _ => advance::<f64, D>(device, case, prepared, stages),
    }
}

fn advance<T: Scalar, D: AdiKernels<T>>(
    device: &D,
    case: &Case,
    prepared: &Prepared,
    stages: &mut Stages<'_>,
) -> Result<Done, CaseError> {
    stages.begin(Stage::Setup)?;
    let placed = |error: TimeError| check::placed(case, error);
    let mut adi = Adi::<T, D>::new(device, &prepared.problem, prepared.config.clone()).map_err(placed)?;
    let mut u = adi.initial_values(&prepared.initial).map_err(placed)?;
    stages.begin(Stage::Solve)?;
    let limit = case.file.solver.time_limit_s.map(Duration::from_secs_f64);
    let mut watch =
        Watch { progress: stages.progress(), steps: prepared.config.steps, begun: Instant::now(), limit };
    let outcome = adi.run(&mut u, &mut watch)?;
    let u = u.to_host()?.into_iter().map(Scalar::to_f64).collect();
    let (device, kernel_launches) = (device.description(), device.kernel_launches());
    let peclet = adi.operator().cell_peclet().filter(CellPeclet::may_oscillate);
    let warnings = peclet.map(|peclet| warning_of_peclet(&peclet, adi.operator())).into_iter().collect();
    Ok(Done { u, outcome, device, kernel_launches, warnings })
}

/// What to say where centred differences may oscillate.
fn warning_of_peclet(peclet: &CellPeclet, operator: &Operator) -> String {
    let CellPeclet { largest, axis, point: [x, y, z], share_above_two } = *peclet;
    let name = ["x", "y", "z"][axis];
    let advice = match largest.is_finite() {
        true => {
            let grid = operator.grid();
            let intervals = (grid.upper()[axis] - grid.lower()[axis]) / grid.spacing()[axis];
            format!("take {:.0} nodes along {name} or more", 1.0 + (intervals * largest / 2.0).ceil())
        }
        false => "there is no diffusion at that node, so no grid is fine enough there".into(),
    };
    format!(
        "the cell Péclet number |c|h/D along {name} is {largest:.3} at ({x}, {y}, {z}) and above 2 at {:.1} % of the nodes: \
         centred differences may oscillate there, and u may leave the range of its data; {advice}",
        100.0 * share_above_two
    )
}

/// Passes steps on and stops when the user asks or the time allowed is over.
struct Watch<'a> {
    progress: &'a mut dyn Progress,
    steps: usize,
    begun: Instant,
    limit: Option<Duration>,
}

impl StepMonitor for Watch<'_> {
    fn step(&mut self, step: usize, _time: f64) -> ControlFlow<AdiStop> {
        self.progress.fraction(step as f64 / self.steps as f64);
        if self.progress.is_interrupted() {
            ControlFlow::Break(AdiStop::Interrupted)
        } else if self.limit.is_some_and(|limit| self.begun.elapsed() >= limit) {
            ControlFlow::Break(AdiStop::TimeLimit)
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Writes the results and the report.
fn finish(
    case: &Case,
    prepared: &Prepared,
    done: Done,
    reason: &str,
    mut warnings: Vec<String>,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    stages.begin(Stage::Write)?;
    let Done { u, outcome, device, kernel_launches, warnings: of_run } = done;
    warnings.extend(of_run);
    let AdiOutcome { stop, steps, time } = outcome;
    if stop != AdiStop::Finished {
        warnings.push(format!("the run {stop} (time {time} after {steps} steps)"));
    }
    let grid = &prepared.grid;
    let report = Report {
        mesh: mesh_report(grid),
        space: SpaceReport { n_dofs: grid.n_nodes(), degree: None, components: 1 },
        solve: SolveReport {
            iterations: steps,
            stop: stop_of(stop),
            relative_residual: f64::NAN,
            true_relative_residual: f64::NAN,
            algebraic_error_estimate: None,
            discretization_error_estimate: None,
            energy_norm: f64::NAN,
            residuals: Vec::new(),
            operator: None,
            preconditioner: None,
            preconditioner_reason: None,
            start: None,
            geometry: std::collections::BTreeMap::new(),
            format_reason: None,
            levels: Vec::new(),
        },
        time: Some(time_report(prepared, &outcome, stages.timings().solve)),
        files: BTreeMap::new(),
        functionals: functional::evaluate(&prepared.functionals, grid, &u, time)?,
        timings_s: Timings::default(),
        memory_bytes: MemoryReport::of_device(None),
        device,
        device_reason: reason.into(),
        kernel_launches,
        warnings,
        citations: citations(prepared),
        version: env!("CARGO_PKG_VERSION").into(),
    };
    write_results(case, report, stages, |staging| {
        let image = vti::Image { nodes: grid.nodes(), origin: grid.lower(), spacing: grid.spacing() };
        if case.file.output.vtu {
            vti::write(&staging.path(GRID_SOLUTION), &image, "u", &u)?;
        }
        Ok(())
    })
}

fn mesh_report(grid: &Grid) -> MeshReport {
    let d = grid.dimension();
    let intervals = |axis: usize| grid.nodes()[axis] - usize::from(!grid.periodic()[axis]);
    let length = |axis: usize| grid.upper()[axis] - grid.lower()[axis];
    MeshReport {
        n_nodes: grid.n_nodes(),
        n_cells: (0..d).map(intervals).product(),
        n_orphans: 0,
        volume: (0..d).map(length).product(),
    }
}

fn time_report(prepared: &Prepared, outcome: &AdiOutcome, seconds: f64) -> TimeReport {
    let per_step = seconds / outcome.steps.max(1) as f64;
    TimeReport {
        scheme: prepared.config.scheme.name(),
        steps: outcome.steps,
        step_length: prepared.config.step_length(),
        reached: outcome.time,
        stop: outcome.stop.name(),
        seconds_per_step: per_step,
        nodes_per_second: prepared.grid.n_nodes() as f64 / per_step,
        rejected: None,
        iterations: None,
    }
}

/// The stop that exit codes go by: a run that reached its end has converged.
fn stop_of(stop: AdiStop) -> Stop {
    match stop {
        AdiStop::Finished => Stop::Converged,
        AdiStop::Interrupted => Stop::Interrupted,
        AdiStop::TimeLimit => Stop::TimeLimit,
        AdiStop::Diverged => Stop::Diverged,
    }
}

fn citations(prepared: &Prepared) -> Vec<String> {
    let start = (prepared.config.rannacher_steps > 0).then_some("rannacher1984");
    let all = prepared.config.scheme.citations().iter().copied().chain(start).chain(["laszlo2016"]);
    all.map(String::from).collect()
}
