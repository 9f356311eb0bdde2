//! How the operator of a problem is held: the one place that decides, and the one where operators are made.

use femtile_device::Cpu;
use femtile_fem::matrix_free::CellRule;
use femtile_fem::matrix_free::reference::CellMatrices;
use femtile_fem::tensor::{TensorProblem, TensorSystem, assemble};
use femtile_linalg::{LinearOperator, Preconditioner};

use crate::file::Operator;
use crate::report::LevelReport;
use crate::run::Clock;
use crate::solve;
use crate::{Case, CaseError, Stage, Timings};

/// An operator with its preconditioner and its right side.
pub(super) struct Held<'a> {
    pub operator: Box<dyn LinearOperator<f64, Cpu> + 'a>,
    pub preconditioner: Box<dyn Preconditioner<f64, Cpu> + 'a>,
    /// The levels of multigrid.
    pub levels: Vec<LevelReport>,
    pub system: TensorSystem<'a>,
    /// Keys of the papers behind the operator.
    pub citations: Vec<&'static str>,
}

/// The operator that the case asks for.
pub(super) fn hold<'a>(
    cpu: &Cpu,
    case: &Case,
    problem: &'a TensorProblem<'a>,
    clock: &mut Clock<'_>,
    timings: &mut Timings,
) -> Result<Held<'a>, CaseError> {
    match case.file.solver.operator {
        Operator::MatrixFree => matrix_free(case),
        Operator::Assembled | Operator::Auto => assembled(cpu, case, problem, clock, timings),
    }
}

/// A sparse matrix.
fn assembled<'a>(
    cpu: &Cpu,
    case: &Case,
    problem: &'a TensorProblem<'a>,
    clock: &mut Clock<'_>,
    timings: &mut Timings,
) -> Result<Held<'a>, CaseError> {
    clock.begin(Stage::Assemble);
    let form = problem.form();
    let cells = CellMatrices::new(problem.space(), form.sigma, form.lambda, CellRule::default())?;
    let (mut matrix, system) = clock.with_fractions(|progress| assemble(cpu, problem, &cells, progress))?;
    timings.assemble = clock.seconds();
    clock.begin(Stage::Setup);
    let (preconditioner, levels) = solve::preconditioner(cpu, &case.file.solver, &mut matrix)?;
    Ok(Held { operator: Box::new(matrix), preconditioner, levels, system, citations: Vec::new() })
}

/// Nothing stored but what the cells need; there is no such operator yet.
///
/// What comes here makes its right side with [`TensorProblem::lift`], its preconditioner with `Diagonal::from_inverse`, and
/// cites `kronbichler2022`.
fn matrix_free<'a>(case: &Case) -> Result<Held<'a>, CaseError> {
    let message = "matrix-free operators are not available yet; use \"auto\"";
    Err(case.wrong(&["solver".into(), "operator".into()], message))
}
