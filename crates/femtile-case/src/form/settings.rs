//! Keys of a case as a problem of a form.

use std::sync::Arc;

use femtile_form::Equation;
use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;
use femtile_solve::{FormProblem, Key, Method, SolverConfig, Value, below, check_degree};

use crate::file::{BoundarySection, Entry, EquationKind, PlaneName, Value as Given};
use crate::{Case, CaseError};

/// The word of `dirichlet` for a component without a value.
pub(crate) const FREE: &str = "free";

/// Returns the settings of the solve: those of the case, and GMRES for equations with convection.
pub(super) fn solver_config(case: &Case) -> Result<SolverConfig, CaseError> {
    let mut config = case.solver_config()?;
    if case.file.equation.kind == EquationKind::ConvectionDiffusion && config.method == Method::Cg {
        config.method = Method::Gmres { restart: Method::default_restart() };
    }
    Ok(config)
}

/// Returns the problem of a case on its mesh.
pub(super) fn problem<'m>(
    case: &Case,
    mesh: &'m Mesh,
    boundary: &Arc<BoundaryFacets>,
) -> Result<FormProblem<'m>, CaseError> {
    let kind = case.file.equation.kind;
    let name = if kind == EquationKind::Elasticity { "elasticity" } else { "convection-diffusion" };
    let equation = Equation::named(name).map_err(femtile_solve::SolveError::from)?;
    let mut problem = FormProblem::new(mesh, Arc::clone(boundary), equation);
    let degree = case.file.space.degree as usize;
    check_degree(mesh.kind, degree)?;
    problem = problem.degree(degree);
    match kind {
        EquationKind::Elasticity => elasticity(case, &mut problem)?,
        _ => convection(case, &mut problem)?,
    }
    for (i, section) in case.file.boundary.iter().enumerate() {
        condition(case, &mut problem, section, &["boundary".into(), i.into()])?;
    }
    Ok(problem)
}

fn elasticity(case: &Case, problem: &mut FormProblem<'_>) -> Result<(), CaseError> {
    let equation = &case.file.equation;
    for (key, value) in [("young", &equation.young), ("poisson", &equation.poisson)] {
        if let Some(value) = value {
            problem.scalar(key, &value.into())?;
        }
    }
    if let Some(plane) = equation.plane {
        if problem.n_components() != 2 {
            let message = "is for meshes in the plane; a body in space has all of its stresses";
            return Err(case.wrong(&["equation".into(), "plane".into()], message));
        }
        problem.scalar("plane_stress", &Value::Number(f64::from(u8::from(plane == PlaneName::Stress))))?;
    }
    if equation.source != Given::Number(0.0) {
        vector(problem, "source", &equation.source)?;
    }
    Ok(())
}

fn convection(case: &Case, problem: &mut FormProblem<'_>) -> Result<(), CaseError> {
    let equation = &case.file.equation;
    problem.tensor("sigma", &(&equation.sigma).into())?;
    if let Some(velocity) = &equation.velocity {
        vector(problem, "velocity", velocity)?;
    }
    problem.scalar("lambda", &(&equation.lambda).into())?;
    Ok(problem.scalar("source", &(&equation.source).into())?)
}

/// Sets a vector: an array, or a cell field.
fn vector(problem: &mut FormProblem<'_>, key: &str, value: &Given) -> Result<(), CaseError> {
    let set = match value {
        Given::Components(entries) => problem.vector(key, &values(entries)),
        other => problem.vector_field(key, &other.into()),
    };
    Ok(set?)
}

fn values(entries: &[Entry]) -> Vec<Value> {
    let value = |entry: &Entry| match entry {
        Entry::Number(number) => Value::Number(*number),
        Entry::Text(text) => Value::Text(text.clone()),
    };
    entries.iter().map(value).collect()
}

/// Adds the condition of a `[[boundary]]`.
fn condition(
    case: &Case,
    problem: &mut FormProblem<'_>,
    section: &BoundarySection,
    path: &[Key],
) -> Result<(), CaseError> {
    let (key, on) = section.place();
    if let Some(value) = &section.dirichlet {
        let values = dirichlet(case, value, problem.n_components(), &below(path, "dirichlet"))?;
        let given = match key {
            "nodes" => problem.dirichlet_at_nodes(on, &values),
            _ => problem.dirichlet(on, &values),
        };
        return Ok(given?);
    }
    if let Some(traction) = &section.traction {
        return Ok(problem.vector_on_boundary("traction", on, &values(traction))?);
    }
    for (term, value) in [("pressure", &section.pressure), ("neumann", &section.neumann)] {
        if let Some(value) = value {
            return Ok(problem.scalars_on_boundary(term, on, &[("value", &value.into())])?);
        }
    }
    if let Some(robin) = &section.robin {
        let (coefficient, value) = (Value::from(&robin.coefficient), Value::from(&robin.value));
        let values = [("coefficient", &coefficient), ("value", &value)];
        return Ok(problem.scalars_on_boundary("robin", on, &values)?);
    }
    Ok(())
}

/// Returns the value of each component, none of those that are free; a single value is that of all.
fn dirichlet(case: &Case, value: &Given, n: usize, path: &[Key]) -> Result<Vec<Option<Value>>, CaseError> {
    let Given::Components(entries) = value else { return Ok(vec![Some(value.into()); n]) };
    let is_free = |entry: &Entry| matches!(entry, Entry::Text(text) if text == FREE);
    if n > 1 && entries.iter().all(is_free) {
        return Err(case.wrong(path, "all components are free: leave the condition out"));
    }
    let free_or = |(entry, value): (&Entry, Value)| if is_free(entry) { None } else { Some(value) };
    Ok(entries.iter().zip(values(entries)).map(free_or).collect())
}
