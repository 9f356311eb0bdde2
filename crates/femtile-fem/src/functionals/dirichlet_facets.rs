//! Distribution of nodal residuals on the Dirichlet boundary to its facets.

use crate::FemError;

/// Which degrees of freedom count.
pub type Counts<'a> = &'a (dyn Fn(u32) -> bool + Sync);

/// The facets with Dirichlet conditions and a first approximation of their nodal fluxes.
///
/// The residual of a node, $r_i = a(u, \varphi_i) - \ell(\varphi_i)$, is the flux through all Dirichlet facets around it. With the
/// fluxes $q_{Fi} = \int_F \varphi_i\,n\cdot\sigma\nabla u$ of the discrete gradient, facet $F$ receives
///
/// $$ q_{Fi} + \frac{|F|}{\sum_{F' \ni i}|F'|}\Big(r_i - \sum_{F' \ni i} q_{F'i}\Big), $$
///
/// so that the shares of a node sum to $r_i$. The first term preserves the order of convergence at edges and
/// corners between sides with different fluxes.
#[derive(Debug, Default)]
pub struct DirichletFacets {
    /// Positions in the list of boundary facets.
    facets: Vec<u32>,
    /// Degrees of freedom of each facet: `[n_facets][n]`.
    dofs: Vec<u32>,
    /// $q_{Fi}$: `[n_facets][n]`.
    fluxes: Vec<f64>,
    measures: Vec<f64>,
}

impl DirichletFacets {
    /// Adds a facet; fluxes that are not finite count as zero.
    pub fn push(&mut self, facet: u32, dofs: &[u32], fluxes: &[f64], measure: f64) {
        self.facets.push(facet);
        self.dofs.extend_from_slice(dofs);
        let is_finite = fluxes.iter().all(|flux| flux.is_finite());
        self.fluxes.extend(fluxes.iter().map(|&flux| if is_finite { flux } else { 0.0 }));
        self.measures.push(measure);
    }

    /// Adds the facets of another part.
    pub fn append(&mut self, mut other: Self) {
        self.facets.append(&mut other.facets);
        self.dofs.append(&mut other.dofs);
        self.fluxes.append(&mut other.fluxes);
        self.measures.append(&mut other.measures);
    }

    /// Returns the degrees of freedom of all facets, one facet after another.
    pub fn dofs(&self) -> &[u32] {
        &self.dofs
    }

    /// Adds the flux through each facet to its entry of `fluxes`, from the residual of all degrees of
    /// freedom: the shares of the facet's degrees of freedom.
    pub fn distribute(&self, fluxes: &mut [f64], mut residual: Vec<f64>, counts: Counts<'_>) {
        let n = self.dofs.len() / self.facets.len().max(1);
        let of_facets =
            || self.dofs.chunks_exact(n.max(1)).zip(self.fluxes.chunks_exact(n.max(1))).zip(&self.measures);
        let mut measures_around = vec![0.0; residual.len()];
        for ((dofs, own), measure) in of_facets() {
            for (&dof, flux) in dofs.iter().zip(own) {
                residual[dof as usize] -= flux;
                measures_around[dof as usize] += measure;
            }
        }
        for (((dofs, own), measure), &facet) in of_facets().zip(&self.facets) {
            let share = |dof: u32| residual[dof as usize] * (measure / measures_around[dof as usize]);
            let counted = dofs.iter().zip(own).filter(|(dof, _)| counts(**dof));
            fluxes[facet as usize] += counted.map(|(&dof, flux)| flux + share(dof)).sum::<f64>();
        }
    }
}

/// Returns the sum of the entries of a set of facets, each counted once.
///
/// # Errors
/// [`FemError::FacetOutOfRange`] for a facet without an entry.
pub fn sum_of_facets(fluxes: &[f64], facets: &[u32]) -> Result<f64, FemError> {
    let mut facets = facets.to_vec();
    facets.sort_unstable();
    facets.dedup();
    let n_facets = fluxes.len();
    let flux = |facet: u32| fluxes.get(facet as usize).ok_or(FemError::FacetOutOfRange { facet, n_facets });
    facets.into_iter().map(|facet| flux(facet).copied()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_of_a_node_sum_to_its_residual_and_keep_the_difference_of_its_facets() {
        let mut given = DirichletFacets::default();
        given.push(4, &[0, 1], &[1.0, 1.0], 1.0);
        given.push(2, &[1, 2], &[5.0, 5.0], 3.0);
        let mut fluxes = vec![0.0; 6];
        given.distribute(&mut fluxes, vec![1.5, 8.0, 4.0], &|_| true);
        // The middle node has 2 more than its facets account for, a quarter of which belongs to the first.
        assert_eq!(fluxes, [0.0, 0.0, 5.0 + 1.5 + 4.0, 0.0, 1.5 + 1.0 + 0.5, 0.0]);
        assert_eq!(sum_of_facets(&fluxes, &[4, 2, 4]).unwrap(), 13.5);
        assert!(matches!(
            sum_of_facets(&fluxes, &[6]),
            Err(FemError::FacetOutOfRange { facet: 6, n_facets: 6 })
        ));
    }

    #[test]
    fn fluxes_that_are_not_finite_do_not_reach_the_shares() {
        let mut given = DirichletFacets::default();
        given.push(0, &[0, 1], &[f64::NAN, 1.0], 1.0);
        given.push(1, &[1, 2], &[0.0, 0.0], 1.0);
        let mut fluxes = vec![0.0; 2];
        given.distribute(&mut fluxes, vec![1.0, 2.0, 3.0], &|_| true);
        assert_eq!(fluxes, [2.0, 4.0]);
        fluxes = vec![0.0; 2];
        given.distribute(&mut fluxes, vec![1.0, 2.0, 3.0], &|dof| dof != 1);
        assert_eq!(fluxes, [1.0, 3.0]);
    }
}
