//! The functionals of a case: checked before the solve, evaluated after it.

use std::collections::BTreeMap;

use femtile_expression::Expression;
use femtile_fem::{FemError, Form, functionals};

use crate::coefficient::{below, check_count, expression};
use crate::file::{Exact, Functional};
use crate::place::Key;
use crate::{Case, CaseError};

/// A functional ready to be evaluated.
pub(crate) struct Ready {
    name: String,
    component: usize,
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
///
/// Of several components each has its own functionals, `name[0]`, `name[1]`, ….
pub(crate) fn prepare(case: &Case, value_at: ValueAt<'_>) -> Result<Vec<Ready>, CaseError> {
    let n = case.file.space.components;
    let functionals = case.file.output.functionals.iter().enumerate();
    let of_components = functionals.flat_map(|own| (0..n).map(move |component| (own, component)));
    let one = |((i, functional), component): ((usize, &Functional), usize)| {
        let path: [Key; 3] = ["output".into(), "functionals".into(), i.into()];
        let exact = |given: &Exact| exact(case, given, component, &below(&path, "exact"));
        let kind = match functional {
            Functional::Max { .. } => Kind::Max,
            Functional::Min { .. } => Kind::Min,
            Functional::L2Norm { .. } => Kind::L2Norm,
            Functional::Energy { .. } => Kind::Energy,
            Functional::Integral { .. } => Kind::Integral,
            Functional::ValueAt { point, .. } => {
                Kind::ValueAt(located(case, value_at, point, &below(&path, "point"))?)
            }
            Functional::ErrorL2 { exact: given, .. } => Kind::ErrorL2(exact(given)?),
            Functional::ErrorH1 { exact: given, .. } => Kind::ErrorH1(exact(given)?),
        };
        let name = functional.name();
        let name = if n == 1 { name.into() } else { format!("{name}[{component}]") };
        Ok(Ready { name, component, kind })
    };
    of_components.map(one).collect()
}

/// What a component is compared with.
fn exact(case: &Case, given: &Exact, component: usize, path: &[Key]) -> Result<Expression, CaseError> {
    match given {
        Exact::All(text) => expression(case, text, path),
        Exact::Each(texts) => {
            check_count(case, texts.len(), path)?;
            expression(case, &texts[component], &below(path, component))
        }
    }
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

/// All functionals by name, each with what `value` says of it for its component.
pub(crate) fn evaluate(
    ready: &[Ready],
    value: impl Fn(&Kind, usize) -> Result<f64, FemError>,
) -> Result<BTreeMap<String, f64>, FemError> {
    let one = |Ready { name, component, kind }: &Ready| Ok((name.clone(), value(kind, *component)?));
    ready.iter().map(one).collect()
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
