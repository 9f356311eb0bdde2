//! Cases of the monodomain equation: from the file to maps of activation.

mod recorder;
mod report;
mod settings;

use femtile_cardiac::{CardiacError, Monodomain};
use femtile_device::{Cpu, Cuda};
use femtile_mesh::Mesh;
use femtile_mesh::check::CheckReport;
use femtile_solve::{SolveError, SolverConfig, Stage, Stages, Transient};

use crate::distribution::{RankMesh, RankMeshPart};
use crate::functional::prepare;
use crate::series::Series;
use crate::settings::begun_on;
use crate::{Case, CaseError, Report, overlap};
use recorder::Recorder;

/// Runs a case on the mesh of this rank, which was checked.
pub(crate) fn run(
    cpu: &Cpu,
    case: &Case,
    (config, opened): (&SolverConfig, Option<Cuda>),
    held: RankMesh,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    let config = &settings::solver(config);
    let (mut mesh, checked) = match held {
        RankMesh::Part(part) => return on_parts(cpu, case, (config, opened), *part, stages),
        RankMesh::Whole(mesh, checked) => (*mesh, *checked),
    };
    let mut warnings = checked.warnings.clone();
    warnings.extend(overlap::warnings_of_regions(case, &case.tag_regions(&mut mesh)?));
    let problem = settings::monodomain(case, |model| Monodomain::new(&mesh, model))?;
    let of = (problem, warnings);
    observed((cpu, opened), case, config, (&mesh, &checked), of, stages)
}

/// Runs a case on a distributed mesh; the first rank also has the whole mesh. Collective.
fn on_parts(
    cpu: &Cpu,
    case: &Case,
    (config, opened): (&SolverConfig, Option<Cuda>),
    RankMeshPart { mut mesh, checked, mut whole, comm, .. }: RankMeshPart,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    let mut warnings = checked.warnings.clone();
    let regions = case.tag_regions_of_ranks(&mut mesh, &comm)?;
    warnings.extend(overlap::warnings_of_regions(case, &regions));
    whole.as_mut().map(|whole| case.tag_regions(whole)).transpose()?;
    let whole = whole.as_ref();
    let problem = settings::monodomain(case, |model| Monodomain::distributed(&mesh, &comm, whole, model))?;
    if let Some(whole) = whole {
        let of = (problem, warnings);
        return observed((cpu, opened), case, config, (whole, &checked), of, stages);
    }
    let series = Series::new(case, Vec::new(), None)?;
    let problem = settings::with_checkpoints(problem, case, [0; 32], None);
    let problem = problem.frames(series.times().iter().copied());
    let solution = problem.run((cpu, opened), config, &mut (), stages);
    let solution = solution.map_err(|error| placed(case, error))?;
    stages.begin(Stage::Write)?;
    report::finish_after_first(case, &checked, (&problem, &mesh, solution), warnings, stages)
}

/// Runs a case on the rank that has the whole mesh, and records the run.
fn observed(
    (cpu, opened): (&Cpu, Option<Cuda>),
    case: &Case,
    config: &SolverConfig,
    (mesh, checked): (&Mesh, &CheckReport),
    (problem, mut warnings): (Monodomain<'_>, Vec<String>),
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    let fingerprint = settings::fingerprint(case, mesh, &problem);
    let resumed = settings::checkpoint(case, fingerprint)?;
    // The series keeps what lies before a time.
    let start = resumed.as_ref().map(|state| problem.frames_until(state).next_up());
    // The functionals are those of a potential, whatever equation it solves; notes on fibres belong to the case.
    let of_potential = begun_on((mesh, &checked.boundary))?;
    let of_potential = Transient::new(of_potential.sigma(&case.file.equation.sigma), 0.0).discretize()?;
    warnings.extend(of_potential.warnings().iter().cloned());
    let functionals = prepare(case, &of_potential)?;
    warnings.extend_from_slice(&functionals.warnings);
    let mut names = functionals.names();
    names.extend(case.file.ecg.iter().flat_map(|ecg| ecg.electrodes.keys().cloned()));
    let series = Series::new(case, names, start)?;
    let problem = settings::with_checkpoints(problem, case, fingerprint, resumed);
    let problem = problem.frames(series.times().iter().copied());
    let mut recorder = Recorder { functionals: &functionals, of_potential: &of_potential, series };
    let done = problem.run((cpu, opened), config, &mut recorder, stages);
    let solution = done.map_err(|error| placed(case, error))?;
    stages.begin(Stage::Write)?;
    let Recorder { series, .. } = recorder;
    report::finish(
        case,
        checked,
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
