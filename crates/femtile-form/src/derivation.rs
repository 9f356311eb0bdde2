//! Residual and tangent of an integral as formulas for readers.

use femtile_expression::{Mathematics, Notation, Shape, Symbol, Value};

use crate::error::FormError;
use crate::form::{Domain, FormBuilder};
use crate::integrand::{Graph, Input, Side};

/// The integrand of an integral of a form as formulas, derived from those that were written.
#[derive(Debug, Clone)]
pub struct Derivation {
    /// The name of the term, on the boundary; none in the cells.
    pub term: Option<String>,
    /// The entries of `flux` and `source` that are not zero. In the cells `flux` is multiplied by ∇v, `source` by v on the right
    /// side, from which the rate with its capacity is taken; on the boundary `flux` is multiplied by v on the right side.
    pub residual: Mathematics,
    /// Their variations along δu, with α δu for that of the rate.
    pub tangent: Mathematics,
    /// The name of α.
    pub shift: String,
}

impl FormBuilder<'_> {
    /// Returns what stands in the integrals over the cells and, for each term once, over boundary facets. Coefficients that do not
    /// depend on the point have their names, except for zeros and ones.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub fn derivations(&self) -> Result<Vec<Derivation>, FormError> {
        let unknowns: Vec<(&str, Shape)> = self.equation.unknowns(self.dimension).collect();
        let integrals = self.integrals(true, |term, domain, graph| {
            let is_on_boundary = match domain {
                Domain::Cells => false,
                Domain::Boundary(_) => true,
                Domain::Interior | Domain::Interface(_) => return None,
            };
            Some(graph.derivation(term, &unknowns, is_on_boundary))
        })?;
        let mut found: Vec<Derivation> = Vec::new();
        for derivation in integrals.into_iter().flatten() {
            if !found.iter().any(|before| before.term == derivation.term) {
                found.push(derivation);
            }
        }
        Ok(found)
    }
}

impl Graph {
    fn derivation(
        mut self,
        term: Option<&str>,
        unknowns: &[(&str, Shape)],
        is_on_boundary: bool,
    ) -> Derivation {
        let residual = self.fluxes_and_sources(unknowns, is_on_boundary);
        let directions = self.directions();
        let mut tangent = Vec::new();
        for (symbol, value) in &residual {
            let along = self.builder.directional_derivative(*value, &directions);
            tangent.push((symbol.clone().variation(), along));
        }
        let mut inputs = self.symbols.clone();
        let states = self.inputs.iter().zip(&self.symbols);
        let of_slot = |slot| states.clone().find(|(input, _)| **input == Input::State(slot));
        inputs.extend((0..self.layout.n_slots()).filter_map(of_slot).map(|(_, u)| u.clone().variation()));
        let names = self.symbols.iter().chain(self.definitions.iter().map(|(symbol, _)| symbol));
        let shift = free_name(names);
        inputs.push(Symbol::new(&shift));
        let notation = Notation { inputs: &inputs, definitions: &self.definitions };
        let written = |mut values: Vec<(Symbol, Value)>| {
            values.retain(|(_, value)| self.builder.as_constant(*value) != Some(0.0));
            self.builder.mathematics(&values, notation)
        };
        let [residual, tangent] = [residual, tangent].map(written);
        Derivation { term: term.map(str::to_owned), residual, tangent, shift }
    }

    fn fluxes_and_sources(
        &mut self,
        unknowns: &[(&str, Shape)],
        is_on_boundary: bool,
    ) -> Vec<(Symbol, Value)> {
        let (layout, d) = (self.layout, self.layout.dimension);
        let (mut fluxes, mut sources) = (Vec::new(), Vec::new());
        let mut first = 0;
        for &(unknown, shape) in unknowns {
            let named = |key: &str| match unknowns {
                [_] => Symbol::new(key),
                _ => Symbol::new(format!("{key}_{unknown}")),
            };
            for i in 0..shape.n_entries() {
                let index: &[usize] = if shape == Shape::Number { &[] } else { &[i] };
                for axis in (0..d).filter(|_| !is_on_boundary) {
                    let value = self.residual[layout.slot(Side::First, first + i, Some(axis))];
                    fluxes.push((named("flux").entry(&[index, &[axis]].concat()), value));
                }
                let opposite = self.residual[layout.slot(Side::First, first + i, None)];
                let key = if is_on_boundary { "flux" } else { "source" };
                sources.push((named(key).entry(index), self.builder.neg(opposite)));
            }
            first += shape.n_entries();
        }
        fluxes.extend(sources);
        fluxes
    }
}

/// Returns `alpha`, or `alpha_1` and so on where formulas have it.
fn free_name<'a>(symbols: impl Iterator<Item = &'a Symbol>) -> String {
    let names: Vec<&str> = symbols.map(Symbol::name).collect();
    let others = (1..).map(|number| format!("alpha_{number}"));
    let mut all = std::iter::once("alpha".to_owned()).chain(others);
    all.find(|name| !names.contains(&name.as_str())).unwrap_or_default()
}
