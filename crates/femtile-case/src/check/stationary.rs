use crate::file::{FieldName, Precision};
use crate::route::depends_on_unknown;
use crate::{Case, CaseError};

/// Why stresses and strains are refused.
pub(super) const OF_ELASTICITY: &str = "belongs to `kind = \"elasticity\"`: take \"gradient\" or \"flux\"";

/// Checks that a stationary case has no keys of equations in time.
pub(super) fn check(case: &Case) -> Result<(), CaseError> {
    let (equation, solver) = (&case.file.equation, &case.file.solver);
    let keys = [
        ("capacity", equation.capacity.is_some()),
        ("diffusion", equation.diffusion.is_some()),
        ("convection", equation.convection.is_some()),
        ("reaction", equation.reaction.is_some()),
    ];
    if let Some((key, _)) = keys.into_iter().find(|(_, given)| *given) {
        let message = "belongs to `kind = \"diffusion\"`; the coefficients of `\"reaction-diffusion\"` are sigma, lambda and source";
        return Err(case.wrong(&["equation".into(), key.into()], message));
    }
    let coefficients = [&equation.sigma, &equation.lambda, equation.source()];
    let has_state = coefficients.into_iter().any(depends_on_unknown) || case.has_flux_of_unknown();
    if equation.initial.is_some() && !has_state {
        let message = "is the first iterate where a coefficient or a flux depends on u, and none does; as initial values it belongs to `kind = \"diffusion\"`";
        return Err(case.wrong(&["equation".into(), "initial".into()], message));
    }
    if case.file.time.is_some() {
        let message = "only `kind = \"diffusion\"` is an equation in time";
        return Err(case.wrong(&["time".into()], message));
    }
    let mut fields = case.file.output.fields.iter();
    if let Some(i) = fields.position(|field| matches!(field, FieldName::Stress | FieldName::Strain)) {
        return Err(case.wrong(&["output".into(), "fields".into(), i.into()], OF_ELASTICITY));
    }
    if let Some(i) = case.file.boundary.iter().position(|section| section.periodic) {
        let message = "periodic sides are for grids, with `kind = \"diffusion\"`";
        return Err(case.wrong(&["boundary".into(), i.into(), "periodic".into()], message));
    }
    if solver.precision == Precision::F32 {
        let message = "single precision is for equations in time; use \"f64\"";
        return Err(case.wrong(&["solver".into(), "precision".into()], message));
    }
    Ok(())
}
