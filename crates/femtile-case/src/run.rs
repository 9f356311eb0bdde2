//! Runs a case: opens the device and chooses the part of the program that solves the equation.

use femtile_device::cuda::Opening;
use femtile_device::{Cpu, Cuda};
use femtile_solve::{DeviceChoice, Progress, Ranks, SolveError, Stages};

use crate::distribution::MeshDistribution;
use crate::placed::placed;
use crate::route::Route;
use crate::{Case, CaseError, Report, ahead, cardiac, diffusion, form, output, stationary, transient};

/// Runs a case and writes its results, also when the solve ended without converging.
///
/// # Errors
/// All of [`CaseError`]. Errors are found before the solve where possible: a missing GPU, a folder that cannot be
/// written to, a point outside the mesh, an expression that does not parse.
pub fn run(case: &Case, progress: &mut dyn Progress) -> Result<Report, CaseError> {
    let mut run = || {
        case.check()?;
        let (mut opening, mut of_ranks) = (None, Vec::new());
        match case.ranks() {
            Ranks::One => opening = case.device()?.begin_opening()?,
            Ranks::Threads(_) => of_ranks = begin_opening_for_ranks(case)?,
            // A process would open the GPUs of all others.
            Ranks::Of(_) => {}
        }
        let report = run_opening(case, opening, progress);
        drop(of_ranks);
        report
    };
    run().map_err(|error| placed(case, error))
}

/// Runs a case on an open GPU, whatever the case says of its device.
///
/// With `device = "auto"` the CPU solves the case, with a warning, when the GPU fails or lacks memory.
///
/// # Errors
/// As [`run`].
pub fn run_on(case: &Case, device: &Cuda, progress: &mut dyn Progress) -> Result<Report, CaseError> {
    case.check()?;
    run_opening(case, Some(device.clone().into()), progress).map_err(|error| placed(case, error))
}

/// Begins to open the GPUs of ranks that are threads: each opens its own later, which takes no time once the driver has opened
/// it for the process.
fn begin_opening_for_ranks(case: &Case) -> Result<Vec<Opening>, CaseError> {
    let config = case.solver_config()?;
    let DeviceChoice::Cuda(first) = config.device else { return Ok(Vec::new()) };
    let gpus = if config.gpus.is_empty() { vec![first] } else { config.gpus };
    let opening = |gpu| Opening::begin(gpu).map_err(|error| SolveError::from(error).into());
    gpus.into_iter().map(opening).collect()
}

fn run_opening(
    case: &Case,
    opening: Option<Opening>,
    progress: &mut dyn Progress,
) -> Result<Report, CaseError> {
    let config = case.solver_config()?;
    if let Some(opening) = &opening {
        opening.prepare(ahead::before_mesh(case, &config));
    }
    let cpu = Cpu::new(config.threads)?;
    output::prepare(case)?;
    let opened = |opening: Option<Opening>| opening.map(Opening::wait).transpose();
    cpu.install(|| {
        let mut stages = Stages::new(progress);
        match case.route() {
            Route::Stationary => stationary::run(&cpu, case, &config, opening, &mut stages),
            Route::Transient => {
                let held = MeshDistribution::held(case, (&config, opening.as_ref()), &mut stages)?;
                transient::run(&cpu, case, (&config, opening), held, &mut stages)
            }
            Route::Heart => {
                let held = MeshDistribution::held(case, (&config, opening.as_ref()), &mut stages)?;
                cardiac::run(&cpu, case, (&config, opened(opening)?), held, &mut stages)
            }
            Route::Grid => diffusion::run(&cpu, case, config.device, opened(opening)?, &mut stages),
            Route::Form => form::run(&cpu, case, opening, &mut stages),
        }
    })
}
