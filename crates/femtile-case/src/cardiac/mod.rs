//! Cases of the monodomain equation: from the file to maps of activation.

mod recorder;
mod report;
mod settings;

use std::sync::Arc;

use femtile_cardiac::CardiacError;
use femtile_device::{Cpu, Cuda};
use femtile_mesh::Mesh;
use femtile_mesh::check::CheckReport;
use femtile_solve::{Poisson, SolveError, SolverConfig, Stage, Stages, Transient};

use crate::functional::prepare;
use crate::series::Series;
use crate::{Case, CaseError, Report, overlap};
use recorder::Recorder;

/// Carries out a case on a mesh that was checked.
pub(crate) fn run(
    cpu: &Cpu,
    case: &Case,
    (config, opened): (&SolverConfig, Option<Cuda>),
    (mut mesh, checked): (Mesh, CheckReport),
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    let mut warnings = case.warnings().to_vec();
    warnings.extend_from_slice(&checked.warnings);
    warnings.extend(overlap::warnings_of_regions(case, &case.tag_regions(&mut mesh)?));
    let problem = settings::monodomain(case, &mesh)?;
    let fingerprint = settings::fingerprint(case, &problem);
    let resumed = settings::checkpoint(case, fingerprint)?;
    // The series keeps what lies before a time.
    let start = resumed.as_ref().map(|state| problem.frames_until(state).next_up());
    // The functionals are those of a potential, whatever equation it solves; notes on fibres belong to the case.
    let of_potential = Poisson::with_boundary(&mesh, Arc::clone(&checked.boundary))?;
    let of_potential = Transient::new(of_potential.sigma(&case.file.equation.sigma), 0.0).discretize()?;
    warnings.extend(of_potential.warnings().iter().cloned());
    let functionals = prepare(case, &of_potential)?;
    let mut names = functionals.names();
    names.extend(case.file.ecg.iter().flat_map(|ecg| ecg.electrodes.keys().cloned()));
    let series = Series::new(case, names, start)?;
    let problem = settings::with_checkpoints(problem, case, fingerprint, resumed);
    let problem = problem.frames(series.times().iter().copied());
    let mut recorder = Recorder { functionals: &functionals, of_potential: &of_potential, series };
    let config = settings::solver(config);
    let done = problem.run((cpu, opened), &config, &mut recorder, stages);
    let solution = done.map_err(|error| placed(case, error))?;
    stages.begin(Stage::Write)?;
    let Recorder { series, .. } = recorder;
    report::finish(
        case,
        &checked,
        (&problem, &of_potential, solution),
        (&functionals, series, warnings),
        stages,
    )
}

/// Gives an error about a setting of the problem its place in the case file.
fn placed(case: &Case, error: CardiacError) -> CaseError {
    match error {
        CardiacError::Setting { field, message } => case.wrong(&settings::path_of(field), message),
        CardiacError::Entry { list, number, field, message } => {
            case.wrong(&settings::path_of_entry(case, (list, number, field)), message)
        }
        CardiacError::Solve(error) => error.into(),
        CardiacError::Device(error) => error.into(),
        CardiacError::Linalg(error) => SolveError::from(error).into(),
        CardiacError::Fem(error) => SolveError::from(error).into(),
        CardiacError::Mesh(error) => SolveError::from(error).into(),
        other => CaseError::Cardiac(other),
    }
}
