//! Runs a case of u_t = ∇·(D∇u) + c·∇u + ru + f on a grid.

mod advance;
mod formula;
mod functional;
mod placed;
mod problem;
mod report;

use femtile_device::{Cpu, Cuda};
use femtile_solve::{Choice, Chosen, DeviceChoice, Stage, Stages};

use crate::file::Generator;
use crate::{Case, CaseError, Report, memory};
use advance::in_precision;
use problem::GridProblem;
use report::finish;

/// Runs the case on the requested device, or on the one expected to be fastest.
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
    let prepared = GridProblem::new(case)?;
    let Choice { device, mut reason } = requested.choose(opened, prepared.grid.n_nodes(), cpu.threads());
    let mut warnings = Vec::new();
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
