//! Terms of Neumann and Robin conditions, facet by facet.

use femtile_space::Space;

use super::checks::not_negative;
use super::{Compiled, Condition, Conditions};
use crate::FemError;
use crate::evaluation::FacetEvaluation;

/// Terms of one facet: $\int (g + c\,w)\,\varphi_i$ and $\int c\,\varphi_i\varphi_j$.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FacetTerm {
    /// Position in the list of boundary facets.
    pub facet: u32,
    /// Degrees of freedom of the closed facet: `[n]`.
    pub dofs: Vec<u32>,
    /// `[n]`.
    pub load: Vec<f64>,
    /// `[n][n]`; empty where $c$ is zero everywhere on the facet.
    pub matrix: Vec<f64>,
}

impl FacetTerm {
    /// Returns whether $c$ is positive somewhere on the facet.
    pub fn reacts(&self) -> bool {
        !self.matrix.is_empty()
    }

    /// Iterates over row, column and value of the entries of the matrix.
    pub fn entries(&self) -> impl Iterator<Item = (u32, u32, f64)> {
        let rows = self.dofs.iter().zip(self.matrix.chunks(self.dofs.len().max(1)));
        rows.flat_map(|(&i, row)| self.dofs.iter().zip(row).map(move |(&j, &value)| (i, j, value)))
    }
}

/// Adds the loads of facets to a vector.
pub(crate) fn add_loads(load: &mut [f64], terms: &[FacetTerm]) {
    for term in terms {
        term.dofs.iter().zip(&term.load).for_each(|(&dof, own)| load[dof as usize] += own);
    }
}

/// Evaluates the terms of all Neumann and Robin facets, by condition and then by facet.
///
/// # Errors
/// A datum that is not finite, or a negative transfer coefficient, reported by the cell of its facet; a folded cell at the
/// boundary.
pub(crate) fn facet_terms(
    space: &Space<'_>,
    conditions: &Conditions<'_>,
) -> Result<Vec<FacetTerm>, FemError> {
    let mut terms = Vec::new();
    if conditions.list.iter().all(|entry| entry.condition.given_value().is_some()) {
        return Ok(terms);
    }
    let evaluation = FacetEvaluation::new(space, conditions.boundary);
    for (number, entry) in conditions.list.iter().enumerate() {
        let (field, transfer, value) = match &entry.condition {
            Condition::Dirichlet(_) | Condition::DirichletAtNodes { .. } => continue,
            Condition::Neumann(flux) => ("neumann", None, flux),
            Condition::Robin { coefficient, value } => ("robin.value", Some(coefficient), value),
        };
        let value = Compiled::scalar(field, value, conditions.mesh)?;
        let transfer =
            transfer.map(|c| Compiled::scalar("robin.coefficient", c, conditions.mesh)).transpose()?;
        let facets: Vec<u32> = conditions.facets_of(number).collect();
        terms.extend(evaluation.map(&facets, |found, tape, facet| {
            let n = found.points.len();
            let (mut values, mut transfers) =
                (vec![0.0; n], vec![0.0; if transfer.is_some() { n } else { 0 }]);
            value.eval_scalar(&mut values, &found.points, tape)?;
            if let Some(transfer) = &transfer {
                transfer.eval_scalar(&mut transfers, &found.points, tape)?;
                not_negative("robin.coefficient", &transfers, &found.points)?;
                values.iter_mut().zip(&transfers).for_each(|(value, c)| *value *= c);
            }
            let weighted = |values: &[f64]| -> Vec<f64> {
                values.iter().zip(found.measures()).map(|(value, measure)| value * measure).collect()
            };
            let is_zero = transfers.iter().all(|&c| c == 0.0);
            let matrix = if is_zero { Vec::new() } else { found.matrix(&weighted(&transfers)) };
            let (dofs, load) = (found.dofs.clone(), found.moments(&weighted(&values)));
            Ok(FacetTerm { facet, dofs, load, matrix })
        })?);
    }
    Ok(terms)
}
