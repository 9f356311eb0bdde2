//! The functionals of a case: checked before the solve, evaluated after it.

use std::collections::BTreeMap;

use femtile_expression::Expression;
use femtile_fem::FemError;
use femtile_solve::{Component, Discretization, Key, Solution, below, check_count, expression};

use crate::file::{Exact, Functional};
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

/// Parses what the functionals need and refuses points outside the mesh, so that no solve is in vain.
///
/// Of several components each has its own functionals, `name[0]`, `name[1]`, ….
pub(crate) fn prepare(case: &Case, discretization: &Discretization<'_>) -> Result<Vec<Ready>, CaseError> {
    check_points(case, discretization)?;
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
                Kind::ValueAt(in_space(case, point, &below(&path, "point"))?)
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
        Exact::All(text) => Ok(expression(text, path)?),
        Exact::Each(texts) => {
            check_count(texts.len(), case.file.space.components, path)?;
            Ok(expression(&texts[component], &below(path, component))?)
        }
    }
}

/// Refuses points that do not lie in the mesh.
fn check_points(case: &Case, discretization: &Discretization<'_>) -> Result<(), CaseError> {
    let (mut points, mut paths) = (Vec::new(), Vec::new());
    for (i, functional) in case.file.output.functionals.iter().enumerate() {
        if let Functional::ValueAt { point, .. } = functional {
            let path: [Key; 4] = ["output".into(), "functionals".into(), i.into(), "point".into()];
            points.push(in_space(case, point, &path)?);
            paths.push(path);
        }
    }
    discretization.check_points(&points).map_err(|(i, error)| case.wrong(&paths[i], error.to_string()))
}

fn in_space(case: &Case, point: &[f64], path: &[Key]) -> Result<[f64; 3], CaseError> {
    match *point {
        [x, y] => Ok([x, y, 0.0]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err(case.wrong(path, "a point has two or three coordinates")),
    }
}

/// Returns all functionals of a solution by name.
pub(crate) fn evaluate(ready: &[Ready], solution: &Solution<'_>) -> Result<BTreeMap<String, f64>, FemError> {
    let one = |Ready { name, component, kind }: &Ready| {
        Ok((name.clone(), value(kind, &solution.component(*component))?))
    };
    ready.iter().map(one).collect()
}

fn value(kind: &Kind, u: &Component<'_>) -> Result<f64, FemError> {
    match kind {
        Kind::Max => Ok(u.max()),
        Kind::Min => Ok(u.min()),
        Kind::L2Norm => u.l2_norm(),
        Kind::Energy => u.energy(),
        Kind::Integral => u.integral(),
        Kind::ValueAt(point) => u.value_at(*point),
        Kind::ErrorL2(exact) => u.error_l2(exact),
        Kind::ErrorH1(exact) => u.error_h1(exact),
    }
}
