//! Cases on quadrilaterals and hexahedra: elements of any degree, cells straight or curved.

mod check;
mod degrees;
mod functional;
mod geometric;
mod lattice;
mod operator;
mod output;
mod quadrature;
mod right_side;

use femtile_device::{Cpu, Cuda};
use femtile_fem::dofs::TensorSpace;
use femtile_fem::tensor::{TensorProblem, functionals};
use femtile_mesh::check::CheckReport;
use femtile_mesh::{CellKind, Mesh};

use crate::device::{Choice, Chosen, Request, is_out_of_memory};
use crate::file::PreconditionerName;
use crate::finish::{Finished, warning_of_imbalance, write_report};
use crate::functional::{Kind, evaluate};
use crate::report::{MeshReport, SpaceReport};
use crate::run::{Clock, Prepared};
use crate::solve::solve;
use crate::{Case, CaseError, Report, Stage, Timings};
pub(crate) use check::check_cells;
use geometric::Boxes;
use operator::{Held, OperatorDevice, hold};

/// Whether cases on such cells are carried out here.
pub(crate) fn is_for(kind: CellKind) -> bool {
    matches!(kind, CellKind::Quadrilateral | CellKind::Hexahedron)
}

/// Carries a case out.
pub(crate) fn run(
    cpu: &Cpu,
    case: &Case,
    (mesh, checked): (&Mesh, &CheckReport),
    (request, opened): (Request, Option<Cuda>),
    clock: &mut Clock<'_>,
    mut timings: Timings,
) -> Result<Report, CaseError> {
    clock.begin(Stage::Space);
    let mut warnings = checked.warnings.clone();
    let degree = case.file.space.degree as usize;
    let space = TensorSpace::new(mesh, degree)?;
    warnings.extend(quadrature::warnings(case.file.space.quadrature, &space));
    let zeros = vec![0.0; space.n_dofs()];
    let value_at = |point| functionals::value_at(&space, &zeros, point);
    let prepared = Prepared::new(case, mesh, &mut warnings, &value_at)?;
    drop(zeros);
    let of_component = |component| TensorProblem::new(&space, &prepared.form(mesh, component));
    let problems = (0..case.file.space.components).map(of_component).collect::<Result<Vec<_>, _>>()?;
    let boxes = match case.file.solver.preconditioner {
        PreconditionerName::Gmg => Some(Boxes::of(case, &problems[0])?),
        _ => None,
    };
    let asked = (case, boxes.as_ref());
    let Choice { device, mut reason } = check::choose(asked, request, opened, &space, cpu.threads())?;
    timings.space = clock.seconds();

    let (prepared, problems) = (&prepared, &problems[..]);
    let mut solving = Solving { cpu, case, checked, prepared, problems, boxes, warnings, timings };
    if let Chosen::Cuda(cuda) = device {
        match solving.solve_on(&request.with_overflow(&cuda), &reason, clock) {
            Err(error) if request == Request::Auto && is_out_of_memory(&error) => {
                reason = error.to_string();
                solving.warnings.push(format!("solved on the CPU: {reason}"));
            }
            done => return done,
        }
    }
    solving.solve_on(cpu, &reason, clock)
}

/// A case whose space and problem are ready.
struct Solving<'a> {
    cpu: &'a Cpu,
    case: &'a Case,
    checked: &'a CheckReport,
    prepared: &'a Prepared,
    /// Of each component.
    problems: &'a [TensorProblem<'a>],
    /// For geometric multigrid.
    boxes: Option<Boxes>,
    warnings: Vec<String>,
    timings: Timings,
}

impl Solving<'_> {
    fn solve_on<D: OperatorDevice>(
        &self,
        device: &D,
        reason: &str,
        clock: &mut Clock<'_>,
    ) -> Result<Report, CaseError> {
        let (case, space) = (self.case, self.problems[0].space());
        let mut timings = self.timings.clone();
        let Held { operator, preconditioner, levels, right, warnings: of_set_up, citations } =
            hold((self.cpu, device), case, (self.problems, self.boxes.as_ref()), clock, &mut timings)?;
        let mut warnings = self.warnings.clone();
        warnings.extend(of_set_up);
        warnings.extend(warning_of_imbalance(right.imbalance()));
        let (a, m) = (operator.as_ref(), preconditioner.as_ref());
        let (w, outcome) = solve(&case.file.solver, a, m, right.values(), clock, &mut timings)?;
        let solutions = right.solutions(&w)?;

        clock.begin(Stage::Write);
        let value = |kind: &Kind, component: usize| {
            functional::value(kind, space, self.problems[component].form(), &solutions[component])
        };
        let finished = Finished {
            mesh: MeshReport {
                volume: functionals::measure(space)?,
                ..MeshReport::new(space.mesh(), self.checked)
            },
            space: SpaceReport {
                n_dofs: w.len(),
                degree: Some(space.degree()),
                components: self.problems.len(),
            },
            outcome,
            levels,
            functionals: evaluate(&self.prepared.functionals, value)?,
            timings,
            warnings,
            citations,
        };
        let report = finished.report(case, device, reason);
        if case.file.output.vtu {
            output::write_solution(case, space, &solutions)?;
        }
        write_report(case, report, clock)
    }
}
