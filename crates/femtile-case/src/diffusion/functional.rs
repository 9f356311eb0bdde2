//! Functionals of a field on a grid: parsed before the run, evaluated after it.

use std::collections::BTreeMap;

use femtile_expression::Expression;
use femtile_solve::{Key, below};
use femtile_time::adi::{Grid, values};

use super::formula::in_time;
use crate::file::{Exact, Functional};
use crate::{Case, CaseError};

/// A functional ready to be evaluated.
pub(super) struct Ready {
    name: String,
    kind: Kind,
}

enum Kind {
    Max,
    Min,
    L2Norm,
    Integral,
    Mean,
    ValueAt(Vec<f64>),
    ErrorL2(Expression),
}

/// Parses the functionals and checks that points lie in the box.
pub(super) fn prepare(case: &Case, grid: &Grid) -> Result<Vec<Ready>, CaseError> {
    let mut all = Vec::new();
    for (i, functional) in case.file.output.functionals.iter().enumerate() {
        let path: [Key; 3] = ["output".into(), "functionals".into(), i.into()];
        let kind = match functional {
            Functional::Max { .. } => Kind::Max,
            Functional::Min { .. } => Kind::Min,
            Functional::L2Norm { .. } => Kind::L2Norm,
            Functional::Integral { .. } => Kind::Integral,
            Functional::Mean { .. } => Kind::Mean,
            Functional::ValueAt { name, point, points, .. } => {
                for (k, point) in points.iter().flatten().enumerate() {
                    let kind = value_at(case, grid, point, &below(&below(&path, "points"), k))?;
                    all.push(Ready { name: format!("{name}[{k}]"), kind });
                }
                let Some(point) = point else { continue };
                value_at(case, grid, point, &below(&path, "point"))?
            }
            Functional::ErrorL2 { exact: Exact::All(exact), .. } => {
                Kind::ErrorL2(in_time(case, exact, &below(&path, "exact"))?)
            }
            Functional::ErrorL2 { exact: Exact::Each(_), .. } => {
                return Err(case.wrong(&below(&path, "exact"), "one expression is needed on a grid"));
            }
            Functional::Energy { .. }
            | Functional::ErrorH1 { .. }
            | Functional::Flux { .. }
            | Functional::Along { .. } => {
                return Err(case.wrong(&below(&path, "kind"), "is not available on a grid"));
            }
        };
        all.push(Ready { name: functional.name().into(), kind });
    }
    Ok(all)
}

/// The value at a point, which is refused outside of the box.
fn value_at(case: &Case, grid: &Grid, point: &[f64], path: &[Key]) -> Result<Kind, CaseError> {
    values::check_point(grid, point).map_err(|error| case.wrong(path, error.to_string()))?;
    Ok(Kind::ValueAt(point.to_vec()))
}

/// The values of all functionals of the field `u` at a time.
pub(super) fn evaluate(
    ready: &[Ready],
    grid: &Grid,
    u: &[f64],
    time: f64,
) -> Result<BTreeMap<String, f64>, CaseError> {
    let mut found = BTreeMap::new();
    for Ready { name, kind } in ready {
        let value = match kind {
            Kind::Max => u.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Kind::Min => u.iter().copied().fold(f64::INFINITY, f64::min),
            Kind::L2Norm => values::l2_norm(grid, u),
            Kind::Integral => values::integral(grid, u),
            Kind::Mean => {
                let lengths = (0..grid.dimension()).map(|axis| grid.upper()[axis] - grid.lower()[axis]);
                values::integral(grid, u) / lengths.product::<f64>()
            }
            Kind::ValueAt(point) => values::value_at(grid, u, point)?,
            Kind::ErrorL2(exact) => values::error_l2(grid, u, exact, time),
        };
        found.insert(name.clone(), value);
    }
    Ok(found)
}
