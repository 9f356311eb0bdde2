//! Functionals of the solution of a form, by component.

use std::collections::BTreeMap;

use femtile_fem::{FemError, functionals};
use femtile_solve::FormSolution;

use crate::CaseError;
use crate::functional::{Evaluated, Kind, Prepared, Ready};

/// Evaluates the functionals; those of several components have their number behind the name, `name[0]`, `name[1]`, …, after that
/// of a point. The energy is that of all components.
pub(super) fn evaluate(prepared: &Prepared, solution: &FormSolution<'_>) -> Result<Evaluated, CaseError> {
    let components: Vec<Vec<f64>> =
        (0..solution.n_components()).map(|component| solution.component(component)).collect();
    let has_fluxes = prepared.numbers.iter().any(|ready| matches!(ready.kind, Kind::Flux(_)));
    let fluxes = if has_fluxes { solution.facet_fluxes()? } else { Vec::new() };
    let mut numbers = BTreeMap::new();
    for Ready { name, index, component, kind, .. } in &prepared.numbers {
        let (space, u) = (solution.space(), components[*component].as_slice());
        let value = match kind {
            Kind::Energy => {
                numbers.insert(name.clone(), solution.energy()?);
                continue;
            }
            Kind::ValuesAt(points) => {
                let found = functionals::values_at(space, u, points)?;
                let named = found.into_iter().enumerate();
                numbers.extend(
                    named.map(|(i, value)| (format!("{name}[{i}]{index}"), value.unwrap_or(f64::NAN))),
                );
                continue;
            }
            Kind::Max => Ok(functionals::max(u)),
            Kind::Min => Ok(functionals::min(u)),
            Kind::L2Norm => functionals::l2_norm(space, u),
            Kind::Integral => functionals::integral(space, u),
            Kind::Mean => functionals::mean(space, u),
            Kind::ValueAt(point) => functionals::value_at(space, u, *point),
            Kind::ErrorL2(exact) => functionals::error_l2(space, u, exact),
            Kind::ErrorH1(exact) => functionals::error_h1(space, u, exact),
            Kind::Flux(facets) => functionals::sum_of_facets(&fluxes[*component], facets),
        };
        numbers.insert(format!("{name}{index}"), value?);
    }
    let dimension = solution.space().mesh().dimension();
    let lines = prepared.lines.iter().map(|line| {
        let of = |u: &Vec<f64>| functionals::along(solution.space(), u, line.from, line.to, line.n);
        Ok(line.sampled(dimension, components.iter().map(of).collect::<Result<_, _>>()?))
    });
    let lines = lines.collect::<Result<_, FemError>>()?;
    Ok(Evaluated { numbers, lines, citations: has_fluxes.then_some("carey1985").into_iter().collect() })
}
