//! Functionals of the solution of a form, by component.

use std::collections::BTreeMap;

use femtile_expression::Expression;
use femtile_solve::{FormProblem, FormSolution, Key, below, expression};

use crate::file::{Exact, Functional};
use crate::{Case, CaseError};

/// Functionals ready to be evaluated.
pub(super) struct Prepared(Vec<(String, Kind)>);

enum Kind {
    Max,
    Min,
    Integral,
    Mean,
    L2Norm,
    Energy,
    ValueAt([f64; 3]),
    /// For each component an exact solution.
    ErrorL2(Vec<Expression>),
}

/// Parses the functionals and checks that points lie in the mesh.
pub(super) fn prepare(case: &Case, problem: &FormProblem<'_>) -> Result<Prepared, CaseError> {
    let mut prepared = Vec::new();
    for (i, functional) in case.file.output.functionals.iter().enumerate() {
        let path: [Key; 3] = ["output".into(), "functionals".into(), i.into()];
        let name = functional.name().to_owned();
        let kind = match functional {
            Functional::Max { .. } => Kind::Max,
            Functional::Min { .. } => Kind::Min,
            Functional::Integral { .. } => Kind::Integral,
            Functional::Mean { .. } => Kind::Mean,
            Functional::L2Norm { .. } => Kind::L2Norm,
            Functional::Energy { .. } => Kind::Energy,
            Functional::ErrorL2 { exact: given, .. } => {
                Kind::ErrorL2(exact(given, problem.n_components(), &below(&path, "exact"))?)
            }
            Functional::ValueAt { point, points, .. } => {
                for (k, point) in points.iter().flatten().enumerate() {
                    let path = below(&below(&path, "points"), k);
                    let place = in_mesh(case, problem, point, &path)?;
                    prepared.push((format!("{name}[{k}]"), Kind::ValueAt(place)));
                }
                let Some(point) = point else { continue };
                Kind::ValueAt(in_mesh(case, problem, point, &below(&path, "point"))?)
            }
            Functional::Flux { .. } | Functional::Along { .. } | Functional::ErrorH1 { .. } => {
                return Err(case.wrong(&path, "is not available for this kind of equation"));
            }
        };
        prepared.push((name, kind));
    }
    Ok(Prepared(prepared))
}

/// Returns the exact solution of each component.
fn exact(given: &Exact, n: usize, path: &[Key]) -> Result<Vec<Expression>, CaseError> {
    Ok(match given {
        Exact::All(text) => vec![expression(text, path)?; n],
        Exact::Each(texts) => {
            if texts.len() != n {
                let message = format!("{} expressions, where u has {n} components", texts.len());
                return Err(CaseError::Setting { path: path.to_vec(), within: None, message });
            }
            let parse = |(i, text): (usize, &String)| expression(text, &below(path, i));
            texts.iter().enumerate().map(parse).collect::<Result<_, _>>()?
        }
    })
}

fn in_mesh(
    case: &Case,
    problem: &FormProblem<'_>,
    point: &[f64],
    path: &[Key],
) -> Result<[f64; 3], CaseError> {
    let place = match *point {
        [x, y] => [x, y, 0.0],
        [x, y, z] => [x, y, z],
        _ => return Err(case.wrong(path, "a point has two or three coordinates")),
    };
    match problem.contains(place)? {
        true => Ok(place),
        false => Err(case.wrong(path, format!("the point {point:?} lies in no cell of the mesh"))),
    }
}

/// Evaluates the functionals; those of several components have their number behind the name, `name[0]`, `name[1]`, ….
pub(super) fn evaluate(
    prepared: &Prepared,
    solution: &FormSolution<'_>,
) -> Result<BTreeMap<String, f64>, CaseError> {
    let n = solution.n_components();
    let mut numbers = BTreeMap::new();
    for (name, kind) in &prepared.0 {
        if matches!(kind, Kind::Energy) {
            numbers.insert(name.clone(), solution.energy()?);
            continue;
        }
        for component in 0..n {
            let value = of_component(kind, solution, component)?;
            let name = if n == 1 { name.clone() } else { format!("{name}[{component}]") };
            numbers.insert(name, value);
        }
    }
    Ok(numbers)
}

fn of_component(kind: &Kind, solution: &FormSolution<'_>, i: usize) -> Result<f64, CaseError> {
    let integral = |f: &dyn Fn([f64; 3], f64) -> f64| solution.integral(&|point, u| f(point, u[i]));
    Ok(match kind {
        Kind::Max => solution.component(i).into_iter().fold(f64::NEG_INFINITY, f64::max),
        Kind::Min => solution.component(i).into_iter().fold(f64::INFINITY, f64::min),
        Kind::Integral => integral(&|_, u| u)?,
        Kind::Mean => integral(&|_, u| u)? / integral(&|_, _| 1.0)?,
        Kind::L2Norm => integral(&|_, u| u * u)?.sqrt(),
        Kind::ErrorL2(exact) => integral(&|point, u| (u - exact[i].eval(point)).powi(2))?.sqrt(),
        Kind::ValueAt(point) => solution.value_at(*point).map_or(f64::NAN, |u| u[i]),
        Kind::Energy => solution.energy()?,
    })
}
