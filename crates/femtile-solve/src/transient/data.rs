//! Data of a problem at a given time, evaluated on the CPU.

use femtile_fem::{BoundaryCondition, Coefficient, Condition, Conditions, Constraints, FemError, load};
use femtile_form::FormError;
use femtile_space::Space;

use crate::coefficient::scalar;
use crate::discretization::Discretization;
use crate::{Key, SolveError, Value};

/// Returns whether the boundary load or Dirichlet values depend on time.
pub(super) fn has_boundary_in_time(problem: &Discretization<'_>) -> bool {
    problem.conditions[0].iter().any(|given| given.condition.datum().uses_time())
}

/// Evaluates the load of the source at a given time.
pub(super) fn source_at(problem: &Discretization<'_>, t: f64) -> Result<Vec<f64>, SolveError> {
    let source = problem.sources[0].at_time(t);
    match evaluate(problem, &source, &[]) {
        Ok((load, _)) => Ok(load),
        Err(source) => Err(SolveError::AtTime { time: t, source }),
    }
}

/// Evaluates the boundary load and the Dirichlet values at a given time.
pub(super) fn boundary_at(
    problem: &Discretization<'_>,
    t: f64,
) -> Result<(Vec<f64>, Constraints), SolveError> {
    let conditions: Vec<BoundaryCondition> =
        problem.conditions[0].iter().map(|given| given.at_time(t)).collect();
    evaluate(problem, &Coefficient::ZERO, &conditions)
        .map_err(|source| SolveError::AtTime { time: t, source })
}

/// Interpolates a value at all unknowns.
pub(crate) fn nodal_values(
    problem: &Discretization<'_>,
    value: &Value,
    path: &[Key],
) -> Result<Vec<f64>, SolveError> {
    let value = scalar(problem.mesh, value, path)?;
    let nodes = (0..problem.mesh.n_nodes() as u32).collect();
    let everywhere = Condition::DirichletAtNodes { nodes, value };
    let conditions = [BoundaryCondition { facets: Vec::new(), condition: everywhere }];
    let found = evaluate(problem, &Coefficient::ZERO, &conditions);
    let (_, constraints) = found.map_err(|error| match error {
        // The value is evaluated like a Dirichlet condition at all nodes.
        FemError::Form(FormError::NotFinite { cell, point, value, unknown, .. }) => {
            FormError::NotFinite { field: "initial", cell, point, value, unknown }.into()
        }
        other => other,
    })?;
    let mut u = vec![0.0; problem.n_dofs()];
    constraints.impose(&mut u);
    Ok(u)
}

fn evaluate(
    problem: &Discretization<'_>,
    source: &Coefficient,
    conditions: &[BoundaryCondition],
) -> Result<(Vec<f64>, Constraints), FemError> {
    let mesh = problem.mesh;
    let evaluated = || {
        let conditions = Conditions::new(mesh, &problem.boundary, conditions)?;
        load(&Space::of(mesh, problem.space())?, source, &conditions)
    };
    evaluated().map_err(|error| match &problem.divided {
        Some(divided) => error.in_global_numbers(&divided.mesh.part.cells, &divided.mesh.part.nodes),
        None => error,
    })
}
