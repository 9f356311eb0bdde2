//! Checks of a case with `kind = "elasticity"` or `"convection-diffusion"`.

use femtile_solve::{Key, below};

use crate::file::{
    EquationKind, EquationSection, Functional, Generator, Method, MetricName, Operator, Precision,
    PreconditionerName, Quadrature, SolverSection, Value,
};
use crate::place::has_key;
use crate::{Case, CaseError};

/// Checks the case; a key without meaning here is an error, so that none is ignored silently.
pub(super) fn check(case: &Case) -> Result<(), CaseError> {
    let file = &case.file;
    if matches!(file.mesh.generate, Some(Generator::Grid { .. })) {
        let message = "a grid has no elements; take a mesh, such as kind = \"box\"";
        return wrong(case, &["mesh", "generate"], message);
    }
    equation(case)?;
    if file.time.is_some() {
        return wrong(case, &["time"], "this equation is stationary: leave [time] out");
    }
    if file.space.components != 1 {
        let message = "the equation says how many components u has: leave this out";
        return wrong(case, &["space", "components"], message);
    }
    if file.space.quadrature != Quadrature::default() {
        let message = "this equation is integrated with p + 1 Gauss points: leave this out";
        return wrong(case, &["space", "quadrature"], message);
    }
    solver(case)?;
    boundary(case)?;
    output(case)
}

fn wrong(case: &Case, path: &[&str], message: &str) -> Result<(), CaseError> {
    let path: Vec<Key> = path.iter().map(|key| (*key).into()).collect();
    Err(case.wrong(&path, message))
}

/// Checks `[equation]`.
fn equation(case: &Case) -> Result<(), CaseError> {
    let (equation, default) = (&case.file.equation, EquationSection::default());
    let others = [
        ("capacity", equation.capacity.is_some()),
        ("diffusion", equation.diffusion.is_some()),
        ("convection", equation.convection.is_some()),
        ("reaction", equation.reaction.is_some()),
        ("initial", equation.initial.is_some()),
    ];
    let (own, foreign, needed) = match equation.kind {
        EquationKind::Elasticity => (
            "elasticity has young, poisson, plane and source",
            vec![
                ("sigma", equation.sigma != default.sigma),
                ("lambda", equation.lambda != default.lambda),
                ("velocity", equation.velocity.is_some()),
            ],
            [("young", &equation.young), ("poisson", &equation.poisson)].to_vec(),
        ),
        _ => (
            "convection-diffusion has sigma, velocity, lambda and source",
            vec![
                ("young", equation.young.is_some()),
                ("poisson", equation.poisson.is_some()),
                ("plane", equation.plane.is_some()),
            ],
            vec![("velocity", &equation.velocity)],
        ),
    };
    if let Some((key, _)) = others.into_iter().chain(foreign).find(|(_, given)| *given) {
        return wrong(case, &["equation", key], &format!("belongs to other equations; {own}"));
    }
    if let Some((key, _)) = needed.iter().find(|(_, value)| value.is_none()) {
        return wrong(case, &["equation"], &format!("the key `{key}` is missing: {own}"));
    }
    if equation.kind == EquationKind::Elasticity && matches!(equation.source, Value::Number(x) if x != 0.0) {
        let message = "the source is a force per volume: give an array with an entry for each axis";
        return wrong(case, &["equation", "source"], message);
    }
    Ok(())
}

/// Checks `[solver]`.
fn solver(case: &Case) -> Result<(), CaseError> {
    let (solver, default) = (&case.file.solver, SolverSection::default());
    let refuse = |key: &str, message: &str| wrong(case, &["solver", key], message);
    if solver.operator == Operator::MatrixFree {
        return refuse("operator", "this equation is solved with a matrix: take \"assembled\" or \"auto\"");
    }
    if matches!(solver.preconditioner, PreconditionerName::Gmg | PreconditionerName::Pmg) {
        let message =
            "multigrid on cells is for kind = \"reaction-diffusion\": take \"amg\", \"jacobi\" or \"auto\"";
        return refuse("preconditioner", message);
    }
    if solver.precision == Precision::F32 {
        return refuse("precision", "single precision is for equations in time; use \"f64\"");
    }
    if solver.metric != MetricName::Auto {
        return refuse("metric", "is for operators without a matrix: leave this out");
    }
    let of_nonlinear = [
        ("nonlinear", solver.nonlinear != default.nonlinear),
        ("nonlinear_tolerance", solver.nonlinear_tolerance != default.nonlinear_tolerance),
        ("nonlinear_iterations", solver.nonlinear_iterations != default.nonlinear_iterations),
    ];
    if let Some((key, _)) = of_nonlinear.into_iter().find(|(_, given)| *given) {
        return refuse(key, "this equation is linear: leave this out");
    }
    let is_asked = solver.method != Method::Cg || has_key(&case.text, &["solver".into(), "method".into()]);
    if case.file.equation.kind == EquationKind::ConvectionDiffusion
        && is_asked
        && solver.method != Method::Gmres
    {
        return refuse(
            "method",
            "convection makes the matrix nonsymmetric: take \"gmres\", the default here",
        );
    }
    Ok(())
}

/// Checks the conditions of `[[boundary]]`.
fn boundary(case: &Case) -> Result<(), CaseError> {
    let is_elastic = case.file.equation.kind == EquationKind::Elasticity;
    for (i, section) in case.file.boundary.iter().enumerate() {
        let others = match is_elastic {
            true => [
                ("neumann", section.neumann.is_some()),
                ("robin", section.robin.is_some()),
                ("periodic", section.periodic),
            ],
            false => [
                ("traction", section.traction.is_some()),
                ("pressure", section.pressure.is_some()),
                ("periodic", section.periodic),
            ],
        };
        let Some((key, _)) = others.into_iter().find(|(_, given)| *given) else { continue };
        let message = match is_elastic {
            true => "elasticity has `dirichlet`, `traction` and `pressure`",
            false => "convection-diffusion has `dirichlet`, `neumann` and `robin`",
        };
        return Err(case.wrong(&["boundary".into(), i.into(), key.into()], message));
    }
    Ok(())
}

/// Checks `[output]`.
fn output(case: &Case) -> Result<(), CaseError> {
    let output = &case.file.output;
    let is_elastic = case.file.equation.kind == EquationKind::Elasticity;
    if !output.fields.is_empty() {
        let message = match is_elastic {
            true => "`stress` and `von_mises` are written without being asked for; no other fields are",
            false => "fields are computed for kind = \"reaction-diffusion\"",
        };
        return wrong(case, &["output", "fields"], message);
    }
    if output.vtu.has_pieces() {
        return wrong(
            case,
            &["output", "vtu"],
            "the solution of this equation is one file, on any number of ranks: `true`, `false` or \"surface\"",
        );
    }
    for (i, functional) in output.functionals.iter().enumerate() {
        if matches!(functional, Functional::Energy { .. }) && !is_elastic {
            let message = "is not available for this kind of equation, which is not symmetric";
            let path: [Key; 3] = ["output".into(), "functionals".into(), i.into()];
            return Err(case.wrong(&below(&path, "kind"), message));
        }
    }
    Ok(())
}
