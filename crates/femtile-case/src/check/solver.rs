use crate::file::{Amount, EquationKind, Method, PreconditionerName};
use crate::{Case, CaseError};

/// Checks `[solver]`: values in range, and options that fit the method and the preconditioner.
pub(super) fn check(case: &Case) -> Result<(), CaseError> {
    let solver = &case.file.solver;
    let wrong = |key: &str, message: String| Err(case.wrong(&["solver".into(), key.into()], message));
    if solver.time_limit_s.is_some_and(|limit| !(0.0..=1e9).contains(&limit)) {
        return wrong("time_limit_s", "must be a number of seconds, not negative".into());
    }
    if let Some(Err(message)) = solver.memory_limit.as_ref().map(Amount::bytes) {
        return wrong("memory_limit", message);
    }
    if solver.steps.is_some() && solver.method != Method::SStepCg {
        return wrong("steps", "steps at once need method = \"s-step-cg\"".into());
    }
    if solver.restart.is_some() && solver.method != Method::Gmres {
        return wrong("restart", "restarts need method = \"gmres\"".into());
    }
    if solver.gmg.is_some() && solver.preconditioner != PreconditionerName::Gmg {
        return wrong("gmg", "these options need preconditioner = \"gmg\"".into());
    }
    if solver.pmg.is_some() && solver.preconditioner != PreconditionerName::Pmg {
        return wrong("pmg", "these options need preconditioner = \"pmg\"".into());
    }
    match &solver.amg {
        Some(_) if !solver.preconditioner.has_algebraic_levels() => {
            return wrong("amg", "these options need preconditioner = \"amg\" or \"pmg\"".into());
        }
        Some(options) => options.check().or_else(|error| wrong("amg", error))?,
        None => {}
    }
    let is_on_grid = case.file.equation.kind == EquationKind::Diffusion && !case.is_transient_on_mesh();
    if case.ranks().n() > 1 && is_on_grid {
        let message = "several ranks solve problems on the cells of a mesh; grids of nodes run on one rank, whose threads share the work";
        return wrong("ranks", message.into());
    }
    Ok(case.solver_config()?.check()?)
}
