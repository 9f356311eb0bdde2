//! Functionals of a function of a space: integrals, norms, errors, fluxes, values at points.
//!
//! Functions have one entry per degree of freedom, the value at its node. Sums run over fixed blocks of cells whose results are
//! added in order: the same bits for any number of threads.

mod dirichlet_facets;
mod flux;
mod integrals;
mod line;
mod point;

use crate::FemError;
pub use dirichlet_facets::{Counts, DirichletFacets, sum_of_facets};
pub use flux::{facet_fluxes, facet_shares, flux};
pub(crate) use integrals::{degree_for, source_rule};
pub use integrals::{
    energy, error_h1, error_l2, integral, l2_norm, mean, measure, reaction_integral, source_integral,
};
pub use line::Line;
pub use point::{along, outside, value_at, values_at};

/// Returns the largest value at a node; NaN without nodes.
pub fn max(u: &[f64]) -> f64 {
    u.iter().copied().fold(f64::NAN, f64::max)
}

/// Returns the smallest value at a node; NaN without nodes.
pub fn min(u: &[f64]) -> f64 {
    u.iter().copied().fold(f64::NAN, f64::min)
}

/// Refuses a vector without exactly one entry per degree of freedom.
pub(crate) fn check_length(u: &[f64], n_dofs: usize) -> Result<(), FemError> {
    if u.len() == n_dofs {
        return Ok(());
    }
    Err(FemError::Length { field: "u", found: u.len(), expected: n_dofs })
}
