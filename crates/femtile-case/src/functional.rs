//! The functionals of a case: checked before the solve, evaluated after it.

use std::collections::BTreeMap;

use femtile_expression::Expression;
use femtile_fem::{FemError, Form, functionals};
use femtile_mesh::Mesh;

use crate::coefficient::{below, expression};
use crate::file::Functional;
use crate::place::Key;
use crate::{Case, CaseError};

/// A functional ready to be evaluated.
pub(crate) struct Ready {
    name: String,
    kind: Kind,
}

enum Kind {
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
pub(crate) fn prepare(case: &Case, mesh: &Mesh) -> Result<Vec<Ready>, CaseError> {
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
                Kind::ValueAt(located(case, mesh, point, &below(&path, "point"))?)
            }
            Functional::ErrorL2 { exact: text, .. } => Kind::ErrorL2(exact(text)?),
            Functional::ErrorH1 { exact: text, .. } => Kind::ErrorH1(exact(text)?),
        };
        Ok(Ready { name: functional.name().into(), kind })
    };
    functionals.map(one).collect()
}

fn located(case: &Case, mesh: &Mesh, point: &[f64], path: &[Key]) -> Result<[f64; 3], CaseError> {
    let point = match *point {
        [x, y] => [x, y, 0.0],
        [x, y, z] => [x, y, z],
        _ => return Err(case.wrong(path, "a point has two or three coordinates")),
    };
    let zeros = vec![0.0; mesh.n_nodes()];
    functionals::value_at(mesh, &zeros, point).map_err(|error| case.wrong(path, error.to_string()))?;
    Ok(point)
}

/// The values of all functionals of the solution `u`.
pub(crate) fn evaluate(
    ready: &[Ready],
    form: &Form<'_>,
    u: &[f64],
) -> Result<BTreeMap<String, f64>, FemError> {
    let mesh = form.mesh;
    let one = |Ready { name, kind }: &Ready| {
        let value = match kind {
            Kind::Max => functionals::max(u),
            Kind::Min => functionals::min(u),
            Kind::L2Norm => functionals::l2_norm(mesh, u)?,
            Kind::Energy => functionals::energy(form, u)?,
            Kind::Integral => functionals::integral(mesh, u)?,
            Kind::ValueAt(point) => functionals::value_at(mesh, u, *point)?,
            Kind::ErrorL2(exact) => functionals::error_l2(mesh, u, exact)?,
            Kind::ErrorH1(exact) => functionals::error_h1(mesh, u, exact)?,
        };
        Ok((name.clone(), value))
    };
    ready.iter().map(one).collect()
}
