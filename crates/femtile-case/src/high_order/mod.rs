//! Cases on quadrilaterals and hexahedra: elements of any degree, cells straight or curved.

mod check;
mod functional;
mod operator;
mod output;

use femtile_device::Cpu;
use femtile_fem::dofs::TensorSpace;
use femtile_fem::tensor::{TensorProblem, functionals};
use femtile_mesh::check::CheckReport;
use femtile_mesh::{CellKind, Mesh};

use crate::device::Request;
use crate::finish::{Finished, warning_of_imbalance, write_report};
use crate::functional::{Kind, evaluate};
use crate::report::{MeshReport, SpaceReport};
use crate::run::{Clock, Prepared};
use crate::solve::solve;
use crate::{Case, CaseError, Report, Stage, Timings};
pub(crate) use check::check_cells;
use operator::{Held, hold};

/// Whether cases on such cells are carried out here.
pub(crate) fn is_for(kind: CellKind) -> bool {
    matches!(kind, CellKind::Quadrilateral | CellKind::Hexahedron)
}

/// Carries a case out on the CPU.
pub(crate) fn run(
    cpu: &Cpu,
    case: &Case,
    (mesh, checked): (&Mesh, &CheckReport),
    request: Request,
    clock: &mut Clock<'_>,
    mut timings: Timings,
) -> Result<Report, CaseError> {
    clock.begin(Stage::Space);
    let mut warnings = checked.warnings.clone();
    let degree = case.file.space.degree as usize;
    let space = TensorSpace::new(mesh, degree)?;
    let zeros = vec![0.0; space.n_dofs()];
    let value_at = |point| functionals::value_at(&space, &zeros, point);
    let prepared = Prepared::new(case, mesh, &mut warnings, &value_at)?;
    drop(zeros);
    let form = prepared.form(mesh);
    let problem = TensorProblem::new(&space, &form)?;
    timings.space = clock.seconds();

    let Held { operator, preconditioner, levels, system, citations } =
        hold(cpu, case, &problem, clock, &mut timings)?;
    warnings.extend(warning_of_imbalance(system.imbalance));
    let (a, m) = (operator.as_ref(), preconditioner.as_ref());
    let (w, outcome) = solve(&case.file.solver, a, m, &system.rhs, clock, &mut timings)?;
    let solution = system.solution(&w)?;

    clock.begin(Stage::Write);
    let value = |kind: &Kind| functional::value(kind, &space, &form, &solution);
    let finished = Finished {
        mesh: MeshReport { volume: functionals::measure(&space)?, ..MeshReport::new(mesh, checked) },
        space: SpaceReport { n_dofs: space.n_dofs(), degree: Some(degree) },
        outcome,
        levels,
        functionals: evaluate(&prepared.functionals, value)?,
        timings,
        warnings,
        citations,
    };
    let report = finished.report(case, cpu, &reason(request, mesh.kind));
    if case.file.output.vtu {
        output::write_solution(case, &space, &solution)?;
    }
    write_report(case, report, clock)
}

/// Why the CPU.
fn reason(request: Request, kind: CellKind) -> String {
    match request {
        Request::Cpu => "asked for".into(),
        _ => format!("{kind} cells are solved on the CPU for now"),
    }
}
