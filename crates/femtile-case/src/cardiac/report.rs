//! The report and the files of a run at its end.

use std::collections::BTreeMap;
use std::path::Path;

use femtile_cardiac::activation::{ActivationTimes, conduction_velocity};
use femtile_cardiac::monodomain::{Monodomain, MonodomainSolution, Outcome, Stop};
use femtile_linalg::krylov::Stop as KrylovStop;
use femtile_mesh::check::CheckReport;
use femtile_mesh::io::FileSum;
use femtile_mesh::io::vtu::{WriteOptions, write_with};
use femtile_mesh::partition::DistributedMesh;
use femtile_mesh::{Field, Mesh};
use femtile_solve::{Discretization, SolutionData, Stages};

use super::settings;
use crate::drawn_field::Exhibit;
use crate::file::FieldOfRun;
use crate::file_names::MESH_SOLUTION;
use crate::functional::Prepared;
use crate::output::{Results, vtu_options, write_results};
use crate::report::{MemoryReport, MeshReport, RanksReport, SpaceReport};
use crate::series::Series;
use crate::{Case, CaseError, Report, SolveReport, TimeReport};

/// Writes the results and the report.
pub(super) fn finish(
    case: &Case,
    checked: &CheckReport,
    (problem, of_potential, solution): (&Monodomain<'_>, &Discretization<'_>, MonodomainSolution),
    (functionals, mut series, mut warnings): (&Prepared, Series<'_>, Vec<String>),
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    let mesh = of_potential.mesh();
    warnings.extend(warning_of(&solution.outcome, mesh));
    let (animation, frames) = (series.take_animation(), series.take_frames());
    let (files, missing) = series.finish()?;
    warnings.extend(missing);
    let fields = nodal_fields(&solution);
    let (numbers, lines) = evaluate(functionals, of_potential, &fields, &solution)?;
    let counts = [mesh.n_nodes(), mesh.n_cells()];
    let mut report = report(case, checked, (problem, &solution), counts, warnings);
    (report.files, report.functionals) = (files, numbers);
    let data = case.deliver(|| {
        let named = |fields: Named| fields.into_iter().map(|(name, field)| (String::from(name), field));
        let (nodal, cells) = maps(mesh, (&fields, &solution));
        Ok(SolutionData::at_nodes(mesh, named(nodal), named(cells)))
    })?;
    // Hearts are insulated.
    let exhibit =
        data.map(|data| Exhibit { data, animation, frames, equation: None, conditions: Vec::new() });
    let write = |folder: &Path| {
        if !case.file.output.vtu.is_written() {
            return Ok(None);
        }
        let maps = maps(mesh, (&fields, &solution));
        write_maps(&folder.join(MESH_SOLUTION), mesh, &maps, vtu_options(case, true))
    };
    write_results(case, (report, exhibit), stages, None, Results::of(write, &lines))
}

/// Ends the run of a rank other than the first, which has only its part of the mesh and writes nothing.
pub(super) fn finish_after_first(
    case: &Case,
    checked: &CheckReport,
    (problem, mesh, solution): (&Monodomain<'_>, &DistributedMesh, MonodomainSolution),
    warnings: Vec<String>,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    let counts = [mesh.counts.n_nodes, mesh.counts.n_cells].map(|n| n as usize);
    let report = report(case, checked, (problem, &solution), counts, warnings);
    write_results(case, (report, None), stages, None, Results::of(|_: &Path| Ok(None), &[]))
}

/// The report of a run on a mesh with these counts of nodes and cells, without files and functionals.
fn report(
    case: &Case,
    checked: &CheckReport,
    (problem, solution): (&Monodomain<'_>, &MonodomainSolution),
    [n_nodes, n_cells]: [usize; 2],
    warnings: Vec<String>,
) -> Report {
    Report {
        mesh: MeshReport {
            n_nodes,
            n_cells,
            n_orphans: checked.n_orphans,
            volume: checked.volume,
            division: checked.division.clone(),
        },
        space: SpaceReport { n_dofs: n_nodes, degree: Some(1), components: 1 },
        solve: solve_report(solution),
        ranks: solution.ranks.as_ref().map(RanksReport::from),
        time: Some(time_report(case, &solution.outcome, n_nodes)),
        memory_bytes: MemoryReport::of_device(solution.memory),
        device: solution.device.clone(),
        device_reason: solution.device_reason.clone(),
        kernel_launches: solution.kernel_launches,
        warnings,
        citations: problem.citations().into_iter().map(String::from).collect(),
        ..Report::of_run()
    }
}

/// Returns the nodal fields that a run records.
fn nodal_fields(solution: &MonodomainSolution) -> BTreeMap<FieldOfRun, &[f64]> {
    let ActivationTimes { first, repolarisation, duration, .. } = &solution.activation;
    BTreeMap::from([
        (FieldOfRun::Activation, first.as_slice()),
        (FieldOfRun::Repolarisation, repolarisation.as_slice()),
        (FieldOfRun::Duration, duration.as_slice()),
    ])
}

/// Evaluates functionals of the potential and of recorded fields, and adds what every run tells.
fn evaluate(
    functionals: &Prepared,
    of_potential: &Discretization<'_>,
    fields: &BTreeMap<FieldOfRun, &[f64]>,
    solution: &MonodomainSolution,
) -> Result<(BTreeMap<String, f64>, Vec<crate::functional::SampledLine>), CaseError> {
    let component = of_potential.component(&solution.potential);
    let mut numbers = functionals.numbers(&[component], Some(solution.outcome.time))?;
    let mut lines = functionals.lines(&[component], None)?;
    for (&field, values) in fields {
        let component = of_potential.component(values);
        numbers.extend(functionals.numbers_of(field, component)?);
        lines.extend(functionals.lines(&[component], Some(field))?);
    }
    let first = &solution.activation.first;
    let activated: Vec<f64> = first.iter().copied().filter(|time| !time.is_nan()).collect();
    let mut add = |name: &str, value: f64| {
        numbers.entry(name.into()).or_insert(value);
    };
    add("activated_share", activated.len() as f64 / first.len().max(1) as f64);
    if !activated.is_empty() {
        add("first_activation", activated.iter().copied().fold(f64::INFINITY, f64::min));
        add("last_activation", activated.iter().copied().fold(f64::NEG_INFINITY, f64::max));
    }
    Ok((numbers, lines))
}

/// Fields at nodes or cells by name.
type Named = Vec<(&'static str, Field)>;

/// Returns the potential at the end and the maps of the run: fields at nodes and of cells.
fn maps(
    mesh: &Mesh,
    (fields, solution): (&BTreeMap<FieldOfRun, &[f64]>, &MonodomainSolution),
) -> (Named, Named) {
    let scalar = |values: &[f64]| Field { n_components: 1, values: values.to_vec() };
    let mut nodal = vec![("V", scalar(&solution.potential))];
    for (field, values) in fields {
        let name = match field {
            FieldOfRun::Activation => "activation",
            FieldOfRun::Repolarisation => "repolarisation",
            FieldOfRun::Duration => "duration",
        };
        nodal.push((name, scalar(values)));
    }
    let velocity = conduction_velocity(mesh, &solution.activation.first);
    (nodal, vec![("conduction_velocity", Field { n_components: 1, values: velocity })])
}

/// Writes the maps of a run, for ParaView.
fn write_maps(
    path: &std::path::Path,
    mesh: &Mesh,
    (nodal, cells): &(Named, Named),
    options: WriteOptions<'_>,
) -> Result<Option<FileSum>, CaseError> {
    Ok(write_with(path, mesh, &lent(nodal), &lent(cells), options)?)
}

fn lent(fields: &Named) -> Vec<(&str, &Field)> {
    fields.iter().map(|(name, field)| (*name, field)).collect()
}

fn solve_report(solution: &MonodomainSolution) -> SolveReport {
    let stop = match solution.outcome.stop {
        Stop::Finished => KrylovStop::Converged,
        Stop::Interrupted => KrylovStop::Interrupted,
        Stop::TimeLimit => KrylovStop::TimeLimit,
        _ => KrylovStop::Diverged,
    };
    SolveReport {
        operator: Some(solution.format.clone()),
        preconditioner: Some(solution.preconditioner),
        ..SolveReport::new(solution.outcome.steps, stop)
    }
}

fn time_report(case: &Case, outcome: &Outcome, n_nodes: usize) -> TimeReport {
    let per_step = outcome.seconds / outcome.steps.max(1) as f64;
    TimeReport {
        scheme: settings::scheme(case).name(),
        steps: outcome.steps,
        step_length: outcome.step,
        reached: outcome.time,
        stop: match outcome.stop {
            Stop::Finished => "finished",
            Stop::Interrupted => "interrupted",
            Stop::TimeLimit => "time-limit",
            Stop::SolverFailed | Stop::NewtonFailed { .. } => "solver-failed",
            Stop::StepTooShort => "step-too-short",
            Stop::Unstable { .. } => "diverged",
        },
        seconds_per_step: per_step,
        nodes_per_second: n_nodes as f64 / per_step,
        rejected: Some(outcome.rejected),
        iterations: Some(outcome.iterations),
    }
}

fn warning_of(outcome: &Outcome, mesh: &Mesh) -> Option<String> {
    let Outcome { stop, steps, time, .. } = outcome;
    let place = |node: usize| {
        let [x, y, z] = mesh.points[node];
        format!("node {node} ({x}, {y}, {z})")
    };
    let reason = match *stop {
        Stop::Finished => return None,
        Stop::Interrupted => "was interrupted by the user".into(),
        Stop::TimeLimit => "reached its time limit".into(),
        Stop::SolverFailed => "ended because a linear solve did not converge".into(),
        Stop::StepTooShort => "ended because its tolerance asks for steps below the shortest one".into(),
        Stop::NewtonFailed { node, potential } => format!(
            "ended because Newton's method did not converge with the shortest step; the residual is largest at {}, where the \
             potential is {potential}",
            place(node)
        ),
        Stop::Unstable { node, potential } => format!(
            "ended because the potential at {} is {potential}: take shorter steps, or integration = \"rush-larsen\"",
            place(node)
        ),
    };
    Some(format!("the run {reason} (time {time} after {steps} steps)"))
}
