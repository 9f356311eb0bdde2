//! Terms of Neumann and Robin conditions, facet by facet.

use femtile_space::Space;

use super::checks::not_negative;
use super::{Compiled, Condition, Conditions};
use crate::FemError;
use crate::evaluation::{FacetEvaluation, FacetPoints};

/// The matrix $\int c\,\varphi_i\varphi_j$ of a facet with a Robin condition.
#[derive(Debug, Clone, PartialEq)]
pub struct FacetMatrix {
    /// Degrees of freedom of the closed facet: `[n]`, on tensor cells $n = (p + 1)^{d-1}$.
    pub dofs: Vec<u32>,
    /// Entries: `[n][n]`, symmetric.
    pub entries: Vec<f64>,
}

/// Terms of one facet: $\int (g + c\,w)\,\varphi_i$ and $\int c\,\varphi_i\varphi_j$.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FacetTerm {
    /// Position in the list of boundary facets.
    pub facet: u32,
    /// `[n]`.
    pub load: Vec<f64>,
    /// Without entries where $c$ is zero everywhere on the facet.
    pub matrix: FacetMatrix,
}

impl FacetTerm {
    /// Returns whether $c$ is positive somewhere on the facet.
    pub fn reacts(&self) -> bool {
        !self.matrix.entries.is_empty()
    }

    /// Iterates over row, column and value of the entries of the matrix.
    pub fn entries(&self) -> impl Iterator<Item = (u32, u32, f64)> {
        let FacetMatrix { dofs, entries } = &self.matrix;
        let rows = dofs.iter().zip(entries.chunks(dofs.len().max(1)));
        rows.flat_map(|(&i, row)| dofs.iter().zip(row).map(move |(&j, &value)| (i, j, value)))
    }
}

/// Adds the loads of facets to a vector.
pub(crate) fn add_loads(load: &mut [f64], terms: &[FacetTerm]) {
    for term in terms {
        term.matrix.dofs.iter().zip(&term.load).for_each(|(&dof, own)| load[dof as usize] += own);
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
    if conditions.list.iter().all(|entry| entry.condition.given_value().is_some()) {
        return Ok(Vec::new());
    }
    terms_of_facets(&FacetEvaluation::new(space, conditions.boundary), conditions)
}

/// As [`facet_terms`], by an evaluation on the facets of the boundary.
pub(crate) fn terms_of_facets<'e>(
    evaluation: &'e FacetEvaluation<'e>,
    conditions: &Conditions<'_>,
) -> Result<Vec<FacetTerm>, FemError> {
    let mut terms = Vec::new();
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
        let found = evaluation.blocks(&facets, |terms: &mut Vec<FacetTerm>, found, tape, facet| {
            let FacetPoints { points, given, factors, .. } = found;
            given.resize(points.len(), 0.0);
            value.eval_scalar(given, points, tape)?;
            factors.resize(points.len(), 0.0);
            if let Some(transfer) = &transfer {
                transfer.eval_scalar(factors, points, tape)?;
                not_negative("robin.coefficient", factors, points)?;
                given.iter_mut().zip(&*factors).for_each(|(value, c)| *value *= c);
            }
            let reacts = transfer.is_some() && factors.iter().any(|&c| c != 0.0);
            found.weigh();
            let entries = if reacts { found.matrix(&found.factors) } else { Vec::new() };
            let matrix = FacetMatrix { dofs: found.dofs.clone(), entries };
            terms.push(FacetTerm { facet, load: found.moments(&found.given), matrix });
            Ok(())
        })?;
        terms.extend(found.into_iter().flatten());
    }
    Ok(terms)
}
