//! The report and the files of a case on a grid.

use std::path::Path;

use femtile_linalg::krylov::Stop;
use femtile_mesh::io::vti;
use femtile_solve::{SolutionData, Stage, Stages};
use femtile_time::adi::{AdiOutcome, AdiStop, Grid};

use super::advance::Advanced;
use super::functional;
use super::problem::GridProblem;
use crate::animation::Animation;
use crate::drawn_field::Exhibit;
use crate::file_names::GRID_SOLUTION;
use crate::output::{Results, write_results};
use crate::report::{MeshReport, SpaceReport};
use crate::vtkhdf::Frames;
use crate::{Case, CaseError, Report, SolveReport, TimeReport, conditions};

/// Writes the results and the report.
pub(super) fn finish(
    case: &Case,
    prepared: &GridProblem,
    done: Advanced,
    reason: &str,
    mut warnings: Vec<String>,
    stages: &mut Stages<'_>,
) -> Result<Report, CaseError> {
    stages.begin(Stage::Write)?;
    let Advanced { u, outcome, device, kernel_launches, warnings: of_run } = done;
    warnings.extend(of_run);
    let AdiOutcome { stop, steps, time } = outcome;
    if stop != AdiStop::Finished {
        warnings.push(format!("the run {stop} (time {time} after {steps} steps)"));
    }
    let grid = &prepared.grid;
    let report = Report {
        mesh: mesh_report(grid),
        space: SpaceReport { n_dofs: grid.n_nodes(), degree: None, components: 1 },
        solve: SolveReport::new(steps, stop_of(stop)),
        time: Some(time_report(prepared, &outcome, stages.timings().solve)),
        functionals: functional::evaluate(&prepared.functionals, grid, &u, time)?,
        device,
        device_reason: reason.into(),
        kernel_launches,
        warnings,
        citations: citations(prepared),
        ..Report::of_run()
    };
    let data = || Ok(SolutionData::on_grid(grid.nodes(), grid.lower(), grid.spacing(), "u", u.clone()));
    let data = case.deliver(data)?;
    let exhibit = data.map(|data| Exhibit {
        equation: None,
        data,
        animation: Animation::default(),
        frames: Frames::default(),
        conditions: conditions::on_grid(case),
    });
    let write = |folder: &Path| {
        let image = vti::Image { nodes: grid.nodes(), origin: grid.lower(), spacing: grid.spacing() };
        if case.file.output.vtu.is_written() {
            vti::write(&folder.join(GRID_SOLUTION), &image, "u", &u)?;
        }
        Ok(None)
    };
    write_results(case, (report, exhibit), stages, None, Results::of(write, &[]))
}

fn mesh_report(grid: &Grid) -> MeshReport {
    let d = grid.dimension();
    let intervals = |axis: usize| grid.nodes()[axis] - usize::from(!grid.periodic()[axis]);
    let length = |axis: usize| grid.upper()[axis] - grid.lower()[axis];
    MeshReport {
        n_nodes: grid.n_nodes(),
        n_cells: (0..d).map(intervals).product(),
        n_orphans: 0,
        division: None,
        volume: (0..d).map(length).product(),
    }
}

fn time_report(prepared: &GridProblem, outcome: &AdiOutcome, seconds: f64) -> TimeReport {
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

/// Returns the stop that determines the exit code: a run that reached its final time has converged.
fn stop_of(stop: AdiStop) -> Stop {
    match stop {
        AdiStop::Finished => Stop::Converged,
        AdiStop::Interrupted => Stop::Interrupted,
        AdiStop::TimeLimit => Stop::TimeLimit,
        AdiStop::Diverged => Stop::Diverged,
    }
}

fn citations(prepared: &GridProblem) -> Vec<String> {
    let start = (prepared.config.rannacher_steps > 0).then_some("rannacher1984");
    let all = prepared.config.scheme.citations().iter().copied().chain(start).chain(["laszlo2016"]);
    all.map(String::from).collect()
}
