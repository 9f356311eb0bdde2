//! Fields computed from recovered gradients, for output files in addition to the solution.

use femtile_fem::FemError;
use std::borrow::Cow;
use std::fmt::Display;

use femtile_fem::recovery::{ErrorEstimate, IsInterrupted};

use crate::Solution;
use crate::output::NodalField;

/// Fields to compute from a solution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FieldConfig {
    /// The recovered gradient at the nodes.
    pub gradient: bool,
    /// The flux density $-\sigma\nabla u$ at the nodes.
    pub flux: bool,
    /// Of elasticity the stresses at the nodes from the recovered gradient.
    pub stress: bool,
    /// Of elasticity the strains.
    pub strain: bool,
    /// The estimated discretization error of each cell.
    pub error: bool,
}

/// The reason why other equations have no stresses.
pub(crate) const OF_ELASTICITY: &str = "stresses and strains are those of `kind = \"elasticity\"`";

/// Fields computed from a solution.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    pub(crate) at_nodes: Vec<NodalField<'static>>,
    error: Option<ErrorEstimate>,
    citations: Vec<&'static str>,
    left_out: Vec<String>,
}

impl Fields {
    pub(crate) fn new(
        solution: &Solution<'_>,
        config: FieldConfig,
        is_interrupted: IsInterrupted<'_>,
    ) -> Self {
        let mut fields = Self::default();
        if config == FieldConfig::default() {
            return fields;
        }
        for (name, _) in
            [("stress", config.stress), ("strain", config.strain)].iter().filter(|(_, is_asked)| *is_asked)
        {
            fields.leave_out(name, &OF_ELASTICITY);
        }
        let n = solution.n_components();
        let has_space = solution.discretization().space().is_some();
        fields.citations.push(if has_space { "naga2005" } else { "zhang2005" });
        fields.citations.extend(config.error.then_some("zienkiewicz1987"));
        let mut estimates = Vec::new();
        for component in 0..n {
            let name = |name: &str| if n == 1 { name.into() } else { format!("{name}[{component}]") };
            let found = solution.component(component).recovered_gradient_interruptible(is_interrupted);
            let gradient = match found {
                Ok(gradient) => gradient,
                Err(error) => {
                    fields.leave_out(&name("gradient"), &error);
                    continue;
                }
            };
            let unless_stopped = || if is_interrupted() { Err(FemError::Interrupted) } else { Ok(()) };
            if config.gradient {
                let field = unless_stopped().map(|()| gradient.at_nodes());
                fields.take(name("gradient"), field);
            }
            if config.flux {
                let field = unless_stopped().and_then(|()| gradient.flux_density());
                fields.take(name("flux"), field);
            }
            if config.error {
                match unless_stopped().and_then(|()| gradient.error_estimate()) {
                    Ok(estimate) => estimates.push(estimate),
                    Err(error) => fields.leave_out("error", &error),
                }
            }
        }
        fields.error = (n > 0 && estimates.len() == n).then(|| together(estimates));
        fields
    }

    /// Returns the estimate of the discretization error of all components together.
    pub fn error_estimate(&self) -> Option<&ErrorEstimate> {
        self.error.as_ref()
    }

    /// Returns the keys of the papers behind the fields, as in `references.bib`.
    pub fn citations(&self) -> &[&'static str] {
        &self.citations
    }

    /// Returns the reasons for fields that could not be computed.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    fn take(&mut self, name: String, field: Result<Vec<f64>, FemError>) {
        let named =
            |values| NodalField { name: name.clone().into(), n_components: 3, values: Cow::Owned(values) };
        self.take_all(&name, field.map(|values| vec![named(values)]));
    }

    /// Takes fields, or the reason why `what` is missing.
    pub(crate) fn take_all<E: Display>(&mut self, what: &str, fields: Result<Vec<NodalField<'static>>, E>) {
        match fields {
            Ok(mut fields) => self.at_nodes.append(&mut fields),
            Err(error) => self.leave_out(what, &error),
        }
    }

    pub(crate) fn cite(&mut self, key: &'static str) {
        self.citations.push(key);
    }

    pub(crate) fn set_error_estimate(&mut self, estimate: ErrorEstimate) {
        self.error = Some(estimate);
    }

    pub(crate) fn leave_out(&mut self, name: &str, error: &dyn Display) {
        self.left_out.push(format!("the field `{name}` is left out: {error}"));
    }
}

/// Returns the estimate for all components, which add up in squares.
pub(crate) fn together(estimates: Vec<ErrorEstimate>) -> ErrorEstimate {
    let mut estimates = estimates.into_iter();
    let first =
        estimates.next().unwrap_or(ErrorEstimate { cells: Vec::new(), total: 0.0, norm: 0.0, lowered: 0.0 });
    estimates.fold(first, |sum, next| ErrorEstimate {
        cells: sum.cells.iter().zip(&next.cells).map(|(a, b)| a.hypot(*b)).collect(),
        total: sum.total.hypot(next.total),
        norm: sum.norm.hypot(next.norm),
        lowered: sum.lowered.max(next.lowered),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_of_components_add_up_in_squares() {
        let of =
            |cells: &[f64], total| ErrorEstimate { cells: cells.to_vec(), total, norm: total, lowered: 0.0 };
        assert_eq!(together(vec![of(&[3.0, 1.0], 6.0)]), of(&[3.0, 1.0], 6.0));
        let sum = together(vec![
            of(&[3.0, 0.0], 3.0),
            of(&[4.0, 12.0], 12.649_110_640_673_518),
            of(&[0.0; 2], 0.0),
        ]);
        assert_eq!(sum.cells, [5.0, 12.0]);
        assert!((sum.total - 13.0).abs() < 1e-14);
    }
}
