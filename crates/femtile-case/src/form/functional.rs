//! Functionals of the solution of a form, by component.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use femtile_expression::Expression;
use femtile_fem::{FemError, functionals};
use femtile_solve::{FormSolution, Functional, SolveError};

use crate::CaseError;
use crate::functional::{Evaluated, Kind, Prepared, Ready};

/// Evaluates the functionals; those of several components have their number behind the name, `name[0]`, `name[1]`, …, after that
/// of a point. The energy is that of all components.
pub(super) fn evaluate(prepared: &Prepared, solution: &FormSolution<'_>) -> Result<Evaluated, CaseError> {
    let components = components(solution);
    let numbers = numbers(prepared, solution)?;
    let dimension = solution.space().mesh().space_dimension();
    let lines = prepared.lines.iter().map(|line| {
        let of = |u: &Vec<f64>| functionals::along(solution.space(), u, line.from, line.to, line.n);
        Ok(line.sampled(dimension, components.iter().map(of).collect::<Result<_, _>>()?))
    });
    let lines = lines.collect::<Result<_, FemError>>()?;
    let citations = has_fluxes(prepared).then_some("carey1985").into_iter().collect();
    Ok(Evaluated { numbers, lines, citations })
}

fn components(solution: &FormSolution<'_>) -> Vec<Vec<f64>> {
    (0..solution.n_components()).map(|component| solution.component(component)).collect()
}

/// Returns whether a number is a flux.
pub(super) fn has_fluxes(prepared: &Prepared) -> bool {
    prepared.numbers.iter().any(|ready| matches!(ready.kind, Kind::Flux { .. }))
}

/// Returns the names of the numbers.
pub(super) fn names(prepared: &Prepared) -> Vec<String> {
    let of = |Ready { name, index, component, kind, .. }: &Ready| match kind {
        Kind::Energy if *component > 0 => Vec::new(),
        Kind::Energy => vec![name.clone()],
        Kind::ValuesAt(points) => (0..points.len()).map(|i| format!("{name}[{i}]{index}")).collect(),
        _ => vec![format!("{name}{index}")],
    };
    prepared.numbers.iter().flat_map(of).collect()
}

/// Returns the energy; of reaction and diffusion that of the equation without loads, which has none in its text.
fn energy(solution: &FormSolution<'_>) -> Result<f64, SolveError> {
    let problem = solution.problem();
    match problem.equation_name() {
        "reaction-diffusion" | "diffusion" => {
            let density = Functional::new("(sigma*grad(u)).grad(u) + lambda*u^2");
            problem.at(solution.u(), solution.time()).integral(&density)
        }
        _ => solution.energy(),
    }
}

/// Evaluates the numbers.
pub(super) fn numbers(
    prepared: &Prepared,
    solution: &FormSolution<'_>,
) -> Result<BTreeMap<String, f64>, SolveError> {
    let components = components(solution);
    // By the cells that they are out of; none for those into the body.
    let mut fluxes: BTreeMap<Option<&str>, Vec<Vec<f64>>> = BTreeMap::new();
    let at = |exact: &Expression| exact.at_time(solution.time());
    let has_thickness = solution.problem().has_thickness();
    let mut numbers = BTreeMap::new();
    for Ready { name, index, component, kind, .. } in &prepared.numbers {
        let (space, u) = (solution.space(), components[*component].as_slice());
        let value = match kind {
            Kind::Energy => {
                numbers.insert(name.clone(), energy(solution)?);
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
            Kind::Formula { of, is_mean } => {
                let at = solution.problem().at(solution.u(), solution.time());
                let value = at.value(of)?;
                Ok(if *is_mean { value / at.value(&of.measure())? } else { value })
            }
            Kind::Integral if has_thickness => {
                Ok(solution.integral(&Functional::new(solution.problem().formula_of(*component)))?)
            }
            Kind::Mean if has_thickness => {
                let of = |formula: String| solution.integral(&Functional::new(formula));
                Ok(of(solution.problem().formula_of(*component))? / of("1".to_owned())?)
            }
            Kind::Integral => functionals::integral(space, u),
            Kind::Mean => functionals::mean(space, u),
            Kind::ValueAt(point) => functionals::value_at(space, u, *point),
            Kind::ErrorL2(exact) => functionals::error_l2(space, u, &at(exact)),
            Kind::ErrorH1(exact) => functionals::error_h1(space, u, &at(exact)),
            Kind::Flux { facets, from } => {
                let all = match fluxes.entry(from.as_deref()) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(missing) => missing.insert(match from {
                        Some(cells) => solution.fluxes_from(cells)?,
                        None => solution.facet_fluxes()?,
                    }),
                };
                functionals::sum_of_facets(&all[*component], facets)
            }
        };
        numbers.insert(format!("{name}{index}"), value?);
    }
    Ok(numbers)
}
