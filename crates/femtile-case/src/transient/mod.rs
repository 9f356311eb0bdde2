//! Cases of u_t = ∇·(D∇u) + ru + f on a mesh: from the file to fields at times.

mod placed;
mod recorder;
pub(crate) mod settings;

use std::collections::BTreeMap;
use std::path::Path;

use femtile_device::cuda::Opening;
use femtile_device::{Cpu, Cuda};
use femtile_mesh::Mesh;
use femtile_mesh::check::CheckReport;
use femtile_solve::{
    Fields, Observer, Poisson, Solution, SolverConfig, Stage, Stages, Transient, TransientSolution,
    check_cells,
};
use femtile_time::implicit::{Outcome, Stop};

use crate::distribution::{RankMesh, RankMeshPart};
use crate::drawn_field::Exhibit;
use crate::functional::{Evaluated, Prepared, prepare};
use crate::output::Results;
use crate::series::Series;
use crate::settings::begun_on;
use crate::{Case, CaseError, Report, TimeReport, conditions, form, output, overlap, pieces};
pub(crate) use placed::placed;
use recorder::Recorder;

/// Runs a case on the mesh of this rank, which was checked.
pub(crate) fn run(
    cpu: &Cpu,
    case: &Case,
    (config, opening): (&SolverConfig, Option<Opening>),
    held: RankMesh,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    if let Some(case) = case.on_mesh(&held) {
        return form::run_after_mesh(cpu, &case, held, opening, stages);
    }
    let opened = opening.map(Opening::wait).transpose()?;
    let (mut mesh, checked) = match held {
        RankMesh::Part(part) => return on_parts(cpu, case, (config, opened), *part, stages),
        RankMesh::Whole(mesh, checked) => (*mesh, *checked),
    };
    check_cells(config, &case.space_config(), mesh.kind)?;
    stages.begin(Stage::Space)?;
    let mut warnings = checked.warnings.clone();
    warnings.extend(overlap::warnings_of_regions(case, &case.tag_regions(&mut mesh)?));
    warnings.extend(settings::warning_of_diffusivities(case));
    let begun = || begun_on((&mesh, &checked.boundary));
    let (transient, start) = resumed(case, &mesh, begun()?)?;
    let problem = transient.discretize()?;
    warnings.extend(overlap::warnings_of(case, &problem));
    let functionals = prepare(case, &problem)?;
    warnings.extend_from_slice(&functionals.warnings);
    let series = Series::new(case, functionals.names(), start)?;
    let transient = transient.frames(series.times().iter().copied());
    let mut recorder = Recorder { functionals: &functionals, series };
    let done = transient.run(problem, (cpu, opened), config, &mut recorder, stages);
    let done = done.map_err(|error| placed(case, error))?;
    stages.begin(Stage::Write)?;
    finish(case, &checked, (done, warnings), recorder, stages)
}

/// Runs a case on a distributed mesh; if the first rank records the run, it also has the whole mesh.
/// Collective.
fn on_parts(
    cpu: &Cpu,
    case: &Case,
    (config, opened): (&SolverConfig, Option<Cuda>),
    RankMeshPart { mut mesh, checked, mut whole, comm, keeps_whole, .. }: RankMeshPart,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    check_cells(config, &case.space_config(), checked.kind)?;
    stages.begin(Stage::Space)?;
    let mut warnings = checked.warnings.clone();
    let regions = case.tag_regions_of_ranks(&mut mesh, &comm)?;
    warnings.extend(overlap::warnings_of_regions(case, &regions));
    warnings.extend(settings::warning_of_diffusivities(case));
    whole.as_mut().map(|whole| case.tag_regions(whole)).transpose()?;
    let begun = Poisson::distributed(&mesh, &comm)?;
    let (transient, start) = match &whole {
        Some(whole) => resumed(case, whole, begun)?,
        None => (settings::transient(case, begun, [0; 32], None)?, None),
    };
    let problem = transient.discretize()?;
    warnings.extend(overlap::warnings_of(case, &problem));
    let on_whole = |mesh| -> Result<_, CaseError> {
        let begun = begun_on((mesh, &checked.boundary))?;
        Ok(settings::transient(case, begun, [0; 32], None)?.discretize()?)
    };
    let whole = whole.as_ref().map(on_whole).transpose()?;
    let functionals = match (&whole, keeps_whole) {
        (Some(whole), _) => Some(prepare(case, whole)?),
        // All ranks compute them at the end.
        (None, false) => Some(prepare(case, &problem)?),
        (None, true) => None,
    };
    warnings.extend(functionals.iter().flat_map(|functionals| functionals.warnings.clone()));
    let names = functionals.as_ref().map_or_else(Vec::new, Prepared::names);
    let series = Series::new(case, names, start)?;
    let transient = transient.frames(series.times().iter().copied());
    let mut recorder = functionals.as_ref().map(|functionals| Recorder { functionals, series });
    let observer: &mut dyn Observer = match &mut recorder {
        Some(recorder) => recorder,
        None => &mut (),
    };
    let done = transient.run_on_parts(problem, whole, (cpu, opened), config, observer, stages);
    let done = done.map_err(|error| placed(case, error))?;
    stages.begin(Stage::Write)?;
    match recorder {
        Some(recorder) => finish(case, &checked, (done, warnings), recorder, stages),
        None => finish_after_first(case, &checked, (done, warnings), stages),
    }
}

/// Makes the run of a case from the problem on its mesh; returns also the time from which it continues, if it
/// does.
fn resumed<'m>(
    case: &Case,
    whole: &Mesh,
    begun: Poisson<'m>,
) -> Result<(Transient<'m>, Option<f64>), CaseError> {
    let fingerprint = settings::fingerprint(case, whole);
    let state = settings::checkpoint(case, fingerprint)?;
    let start = state.as_ref().and_then(|state| state.history.first()).map(|(time, _)| *time);
    Ok((settings::transient(case, begun, fingerprint, state)?, start))
}

/// Writes the results of the rank that has recorded the run.
fn finish(
    case: &Case,
    checked: &CheckReport,
    (done, mut warnings): (TransientSolution<'_>, Vec<String>),
    recorder: Recorder<'_>,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    let Recorder { functionals, mut series } = recorder;
    let outcome = *done.outcome();
    let (solution, whole) = done.into_both();
    let shown = whole.as_ref().unwrap_or(&solution);
    warnings.extend_from_slice(shown.warnings());
    let Evaluated { numbers, lines, citations } = functionals.evaluate_at(shown, Some(outcome.time))?;
    let data = case.deliver(|| shown.data(&Fields::default()))?;
    let (animation, frames) = (series.take_animation(), series.take_frames());
    let conditions = || conditions::on_mesh(case, shown.discretization(), &checked.boundary);
    let exhibit =
        data.map(|data| Exhibit { data, animation, frames, equation: None, conditions: conditions() });
    let (files, missing) = series.finish()?;
    warnings.extend(missing);
    let mut report = report(case, checked, (&solution, &outcome), (numbers, warnings), stages)?;
    report.citations.extend(citations.into_iter().map(String::from));
    report.files.extend(files);
    let written = if case.file.output.vtu.has_pieces() { &solution } else { shown };
    let pieces = pieces::names(case, written);
    let write = |folder: &Path| output::write_solution(case, folder, (written, &Fields::default()));
    let results = Results { solution: write, lines: &lines, pieces };
    output::write_results(case, (report, exhibit), stages, None, results)
}

/// Writes the results of a rank other than the first, which has only its part of the mesh.
fn finish_after_first(
    case: &Case,
    checked: &CheckReport,
    (done, mut warnings): (TransientSolution<'_>, Vec<String>),
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    let outcome = *done.outcome();
    let solution = done.into_end();
    warnings.extend_from_slice(solution.warnings());
    let report = report(case, checked, (&solution, &outcome), (BTreeMap::new(), warnings), stages)?;
    let pieces = pieces::names(case, &solution);
    let write = |folder: &Path| output::write_solution(case, folder, (&solution, &Fields::default()));
    let results = Results { solution: write, lines: &[], pieces };
    output::write_results(case, (report, None), stages, None, results)
}

/// The report of a run. Collective if ranks have only their parts.
fn report(
    case: &Case,
    checked: &CheckReport,
    (solution, outcome): (&Solution<'_>, &Outcome),
    numbers_and_warnings: (BTreeMap<String, f64>, Vec<String>),
    stages: &Stages<'_>,
) -> Result<Report, CaseError> {
    let mut report = Report::of_solution(case, checked, solution, numbers_and_warnings)?;
    let [.., n_dofs] = solution.counts();
    report.time = Some(time_report(case, outcome, n_dofs, stages.timings().solve));
    Ok(report)
}

/// Describes a run that took some seconds, of n unknowns.
pub(crate) fn time_report(case: &Case, outcome: &Outcome, n: usize, seconds: f64) -> TimeReport {
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
