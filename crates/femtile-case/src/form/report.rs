//! The report of the solution of a form.

use std::collections::BTreeMap;

use femtile_fem::functionals::measure;
use femtile_mesh::check::CheckReport;
use femtile_solve::FormSolution;

use crate::report::{
    LevelReport, LoadStepReport, MemoryReport, MeshReport, ModeReport, NonlinearReport, RanksReport,
    SpaceReport, overflows,
};
use crate::{CaseError, Report, SolveReport};

/// Describes a solution on a mesh that was checked.
pub(super) fn of_solution(
    checked: &CheckReport,
    solution: &FormSolution<'_>,
    (functionals, mut warnings): (BTreeMap<String, f64>, Vec<String>),
) -> Result<Report, CaseError> {
    let (outcome, space) = (solution.outcome(), solution.space());
    let mesh = space.mesh();
    let (format, format_reason) = solution.format();
    warnings.extend(overflows(outcome.energy_norm, &functionals));
    Ok(Report {
        mesh: MeshReport {
            n_nodes: mesh.n_nodes(),
            n_cells: mesh.n_cells(),
            n_orphans: checked.n_orphans,
            division: checked.division.clone(),
            // That of the check takes curved cells as straight, and is an area of bodies of revolution.
            volume: match mesh.curved.is_some() || space.is_axisymmetric() {
                true => measure(space)?,
                false => checked.volume,
            },
        },
        space: SpaceReport {
            n_dofs: solution.u().len(),
            degree: Some(space.element().degree()),
            components: solution.n_components(),
        },
        solve: SolveReport {
            operator: Some(format.into()),
            format_reason: Some(format_reason.into()),
            preconditioner: Some(solution.preconditioner()),
            nonlinear: solution.nonlinear().map(|report| NonlinearReport {
                load_steps: solution
                    .load_steps()
                    .iter()
                    .map(|step| LoadStepReport { t: step.time, iterations: step.iterations })
                    .collect(),
                ..report.into()
            }),
            levels: solution.levels().iter().map(LevelReport::from).collect(),
            ..SolveReport::of_outcome(outcome)
        },
        ranks: solution.ranks().map(RanksReport::from),
        modes: solution.modes().iter().map(ModeReport::from).collect(),
        functionals,
        memory_bytes: MemoryReport::of_device(solution.memory()),
        device: solution.device().into(),
        device_reason: solution.device_reason().into(),
        kernel_launches: solution.kernel_launches(),
        warnings,
        citations: solution.citations().iter().map(|key| (*key).into()).collect(),
        ..Report::of_run()
    })
}
