//! The functionals of a case: checked before the solve, evaluated after it.

use std::collections::BTreeMap;

use femtile_expression::Expression;
use femtile_fem::{FemError, Form, functionals};

use crate::coefficient::{below, expression};
use crate::file::Functional;
use crate::place::Key;
use crate::{Case, CaseError};

/// A functional ready to be evaluated.
pub(crate) struct Ready {
    name: String,
    kind: Kind,
}

/// Which number it is.
pub(crate) enum Kind {
    Max,
    Min,
    L2Norm,
    Energy,
    Integral,
    ValueAt([f64; 3]),
    ErrorL2(Expression),
    ErrorH1(Expression),
}

/// What looks for a point in a mesh.
type ValueAt<'a> = &'a dyn Fn([f64; 3]) -> Result<f64, FemError>;

/// Parses what the functionals need and refuses points that `value_at` does not find, so that no solve is in vain.
pub(crate) fn prepare(case: &Case, value_at: ValueAt<'_>) -> Result<Vec<Ready>, CaseError> {
    let functionals = case.file.output.functionals.iter().enumerate();
    let one = |(i, functional): (usize, &Functional)| {
        let path: [Key; 3] = ["output".into(), "functionals".into(), i.into()];
        let exact = |text: &String| expression(case, text, &below(&path, "exact"));
        let kind = match functional {
            Functional::Max { .. } => Kind::Max,
            Functional::Min { .. } => Kind::Min,
            Functional::L2Norm { .. } => Kind::L2Norm,
            Functional::Energy { .. } => Kind::Energy,
            Functional::Integral { .. } => Kind::Integral,
            Functional::ValueAt { point, .. } => {
                Kind::ValueAt(located(case, value_at, point, &below(&path, "point"))?)
            }
            Functional::ErrorL2 { exact: text, .. } => Kind::ErrorL2(exact(text)?),
            Functional::ErrorH1 { exact: text, .. } => Kind::ErrorH1(exact(text)?),
        };
        Ok(Ready { name: functional.name().into(), kind })
    };
    functionals.map(one).collect()
}

fn located(case: &Case, value_at: ValueAt<'_>, point: &[f64], path: &[Key]) -> Result<[f64; 3], CaseError> {
    let point = match *point {
        [x, y] => [x, y, 0.0],
        [x, y, z] => [x, y, z],
        _ => return Err(case.wrong(path, "a point has two or three coordinates")),
    };
    value_at(point).map_err(|error| case.wrong(path, error.to_string()))?;
    Ok(point)
}

/// All functionals by name, each with what `value` says of it.
pub(crate) fn evaluate(
    ready: &[Ready],
    value: impl Fn(&Kind) -> Result<f64, FemError>,
) -> Result<BTreeMap<String, f64>, FemError> {
    ready.iter().map(|Ready { name, kind }| Ok((name.clone(), value(kind)?))).collect()
}

/// The value for a solution `u` of linear elements.
pub(crate) fn value(kind: &Kind, form: &Form<'_>, u: &[f64]) -> Result<f64, FemError> {
    let mesh = form.mesh;
    match kind {
        Kind::Max => Ok(functionals::max(u)),
        Kind::Min => Ok(functionals::min(u)),
        Kind::L2Norm => functionals::l2_norm(mesh, u),
        Kind::Energy => functionals::energy(form, u),
        Kind::Integral => functionals::integral(mesh, u),
        Kind::ValueAt(point) => functionals::value_at(mesh, u, *point),
        Kind::ErrorL2(exact) => functionals::error_l2(mesh, u, exact),
        Kind::ErrorH1(exact) => functionals::error_h1(mesh, u, exact),
    }
}
