//! Cases of u_t = ∇·(D∇u) + ru + f on a mesh: from the file to fields at times.

mod placed;
mod recorder;
mod settings;

use std::path::Path;

use femtile_device::{Cpu, Cuda};
use femtile_mesh::Mesh;
use femtile_mesh::check::CheckReport;
use femtile_solve::{Fields, SolverConfig, Stage, Stages, TransientSolution, check_cells};
use femtile_time::implicit::{Outcome, Stop};

use crate::functional::{Evaluated, Prepared, prepare};
use crate::output::Results;
use crate::series::Series;
use crate::shown::Exhibit;
use crate::{Case, CaseError, Report, TimeReport, conditions, output, overlap, pieces};
use recorder::Recorder;

/// Carries a case out on a mesh that was checked.
pub(crate) fn run(
    cpu: &Cpu,
    case: &Case,
    (config, opened): (&SolverConfig, Option<Cuda>),
    (mut mesh, checked): (Mesh, CheckReport),
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    check_cells(config, &case.space_config(), mesh.kind)?;
    stages.begin(Stage::Space)?;
    let mut warnings = case.warnings().to_vec();
    warnings.extend_from_slice(&checked.warnings);
    warnings.extend(overlap::warnings_of_regions(case, &case.tag_regions(&mut mesh)?));
    let fingerprint = settings::fingerprint(case, &mesh);
    let resumed = settings::checkpoint(case, fingerprint)?;
    let start = resumed.as_ref().and_then(|state| state.history.first()).map(|(time, _)| *time);
    let transient = settings::transient(case, (&mesh, &checked.boundary), fingerprint, resumed)?;
    let problem = transient.discretize()?;
    warnings.extend(overlap::warnings(case, problem.overlaps(), "facets"));
    warnings.extend(overlap::warnings(case, problem.node_overlaps(), "nodes"));
    let functionals = prepare(case, &problem)?;
    let series = Series::new(case, functionals.names(), start)?;
    let transient = transient.frames(series.times().iter().copied());
    let mut recorder = Recorder { functionals: &functionals, series };
    let done = transient.run(problem, (cpu, opened), config, &mut recorder, stages);
    let done = done.map_err(|error| placed::placed(case, error))?;
    stages.begin(Stage::Write)?;
    finish(case, &checked, (done, warnings), (recorder.series, &functionals), stages)
}

fn finish(
    case: &Case,
    checked: &CheckReport,
    (done, mut warnings): (TransientSolution<'_>, Vec<String>),
    (mut series, functionals): (Series<'_>, &Prepared),
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    let outcome = *done.outcome();
    let solution = done.into_end();
    warnings.extend_from_slice(solution.warnings());
    let Evaluated { numbers, lines, citations } = functionals.evaluate_at(&solution, Some(outcome.time))?;
    let data = case.deliver(|| solution.data(&Fields::default()))?;
    let film = series.take_film();
    let conditions = || conditions::on_mesh(case, solution.discretization(), &checked.boundary);
    let exhibit = data.map(|data| Exhibit { data, film, conditions: conditions() });
    let (files, missing) = series.finish()?;
    warnings.extend(missing);
    let mut report = Report::of_solution(case, checked, &solution, (numbers, warnings))?;
    report.time = Some(time_report(case, &outcome, solution.values().len(), stages.timings().solve));
    report.citations.extend(citations.into_iter().map(String::from));
    report.files.extend(files);
    let pieces = pieces::names(case, &solution);
    let write = |folder: &Path| output::write_solution(case, folder, (&solution, &Fields::default()));
    let results = Results { solution: write, lines: &lines, pieces };
    output::write_results(case, (report, exhibit), stages, None, results)
}

fn time_report(case: &Case, outcome: &Outcome, n: usize, seconds: f64) -> TimeReport {
    let start = case.file.time.as_ref().map_or(0.0, |time| time.start);
    let per_step = seconds / outcome.steps.max(1) as f64;
    TimeReport {
        scheme: settings::scheme(case).name(),
        steps: outcome.steps,
        step_length: (outcome.time - start) / outcome.steps.max(1) as f64,
        reached: outcome.time,
        stop: match outcome.stop {
            Stop::Finished => "finished",
            Stop::Interrupted => "interrupted",
            Stop::TimeLimit => "time-limit",
            Stop::SolverFailed => "solver-failed",
            Stop::StepTooShort => "step-too-short",
        },
        seconds_per_step: per_step,
        nodes_per_second: n as f64 / per_step,
        rejected: Some(outcome.rejected),
        iterations: Some(outcome.iterations),
    }
}
