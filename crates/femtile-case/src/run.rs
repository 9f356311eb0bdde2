//! Runs a case: opens the device and chooses the kind of equation.

use femtile_device::{Cpu, Cuda};
use femtile_solve::{Progress, Stages};

use crate::checked_mesh::checked_mesh;
use crate::file::EquationKind;
use crate::placed::placed;
use crate::{Case, CaseError, Report, cardiac, diffusion, output, stationary, transient};

/// Runs a case and writes its results, also when the solve ended without converging.
///
/// # Errors
/// All of [`CaseError`]. Errors are found before the solve where possible: a missing GPU, a folder that cannot be
/// written to, a point outside the mesh, an expression that does not parse.
pub fn run(case: &Case, progress: &mut dyn Progress) -> Result<Report, CaseError> {
    let mut run = || {
        case.check()?;
        let opened = case.device()?.open()?;
        run_opened(case, opened, progress)
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
    run_opened(case, Some(device.clone()), progress).map_err(|error| placed(case, error))
}

fn run_opened(case: &Case, opened: Option<Cuda>, progress: &mut dyn Progress) -> Result<Report, CaseError> {
    let config = case.solver_config()?;
    let cpu = Cpu::new(config.threads)?;
    output::prepare(case)?;
    cpu.install(|| {
        let mut stages = Stages::new(progress);
        match case.file.equation.kind {
            EquationKind::Diffusion if case.is_transient_on_mesh() => {
                let made = checked_mesh(case, opened.is_some(), &mut stages)?;
                transient::run(&cpu, case, (&config, opened), made, &mut stages)
            }
            EquationKind::Monodomain => {
                let made = checked_mesh(case, opened.is_some(), &mut stages)?;
                cardiac::run(&cpu, case, (&config, opened), made, &mut stages)
            }
            EquationKind::Diffusion => diffusion::run(&cpu, case, config.device, opened, &mut stages),
            EquationKind::ReactionDiffusion => stationary::run(&cpu, case, &config, opened, &mut stages),
        }
    })
}
