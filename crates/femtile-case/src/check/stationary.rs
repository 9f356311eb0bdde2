use femtile_expression::{Expression, Names, Variable};

use crate::file::{Entry, Precision, Value};
use crate::{Case, CaseError};

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
    if equation.initial.is_some() && !coefficients.into_iter().any(depends_on_unknown) {
        let message = "is the first iterate where a coefficient depends on u, and none does; as initial values it belongs to `kind = \"diffusion\"`";
        return Err(case.wrong(&["equation".into(), "initial".into()], message));
    }
    if case.file.time.is_some() {
        let message = "only `kind = \"diffusion\"` is an equation in time";
        return Err(case.wrong(&["time".into()], message));
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

/// Returns whether a formula in a value names u, the solution.
fn depends_on_unknown(value: &Value) -> bool {
    let names = Names { time: false, others: &["u"] };
    let of_text = |text: &String| {
        Expression::parse_with(text, &names).is_ok_and(|formula| formula.uses(Variable::Other(0)))
    };
    match value {
        Value::Text(text) => of_text(text),
        Value::Tensor(rows) => {
            let mut entries = rows.iter().flatten();
            entries.any(|entry| matches!(entry, Entry::Text(text) if of_text(text)))
        }
        Value::ByTag { by_tag, default } => by_tag.values().chain(default.as_deref()).any(depends_on_unknown),
        _ => false,
    }
}
