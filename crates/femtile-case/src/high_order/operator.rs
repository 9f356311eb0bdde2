//! How the operator of a problem is held: the one place that decides, and the one where operators are made.

use femtile_device::{Buffer, Cpu};
use femtile_fem::matrix_free::reference::CellMatrices;
use femtile_fem::matrix_free::{CellRule, MatrixFree, MatrixFreeConfig, Terms};
use femtile_fem::tensor::{TensorProblem, TensorSystem, assemble};
use femtile_linalg::precondition::Diagonal;
use femtile_linalg::{LinalgError, LinearOperator, Preconditioner};

use crate::file::{Operator, PreconditionerName};
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
        Operator::MatrixFree => matrix_free(cpu, case, problem, clock, timings),
        Operator::Assembled => assembled(cpu, case, problem, clock, timings),
        Operator::Auto if needs_matrix(case) => assembled(cpu, case, problem, clock, timings),
        Operator::Auto => matrix_free(cpu, case, problem, clock, timings),
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

/// Whether what the case asks for is made from a matrix.
fn needs_matrix(case: &Case) -> bool {
    case.file.solver.preconditioner == PreconditionerName::Amg
}

/// Nothing stored but what the cells need.
fn matrix_free<'a>(
    cpu: &Cpu,
    case: &Case,
    problem: &'a TensorProblem<'a>,
    clock: &mut Clock<'_>,
    timings: &mut Timings,
) -> Result<Held<'a>, CaseError> {
    clock.begin(Stage::Assemble);
    let form = problem.form();
    let lambda = (form.lambda.as_constant() != Some(0.0)).then_some(form.lambda);
    let terms = Terms { sigma: Some(form.sigma), lambda };
    let constrained = problem.constraints().dofs();
    let facets = problem.facet_matrices();
    let config = MatrixFreeConfig { constrained, facets, ..MatrixFreeConfig::default() };
    let operator = MatrixFree::new(cpu, problem.space(), terms, config)?;
    let system = problem.lift(cpu, &mut |y, x| {
        operator.apply_to_given(y, x);
        Ok(())
    })?;
    timings.assemble = clock.seconds();
    clock.begin(Stage::Setup);
    let preconditioner = match case.file.solver.preconditioner {
        PreconditionerName::None => Diagonal::identity(cpu, system.rhs.len())?,
        _ => Diagonal::from_inverse(Buffer::from_vec(cpu, inverse(operator.diagonal())?)?),
    };
    timings.setup = clock.seconds();
    Ok(Held {
        operator: Box::new(operator),
        preconditioner: Box::new(preconditioner),
        levels: Vec::new(),
        system,
        citations: vec!["kronbichler2022"],
    })
}

/// One over each entry of a diagonal.
fn inverse(mut diagonal: Vec<f64>) -> Result<Vec<f64>, LinalgError> {
    for (row, entry) in diagonal.iter_mut().enumerate() {
        if !(*entry > 0.0 && entry.is_finite()) {
            return Err(LinalgError::Diagonal { row, value: *entry });
        }
        *entry = entry.recip();
    }
    Ok(diagonal)
}
