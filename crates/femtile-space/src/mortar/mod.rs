//! Weak continuity of functions across two sides whose meshes do not match.
//!
//! The values on the side `to` are the mortar projection of those on the side `from`,
//! $\int \psi_i\, (u_{to} - u_{from}) = 0$ for the multipliers $\psi_i$ of the inner nodes i of `to`; those of its rim are interpolated.
//! Multipliers are biorthogonal to the functions of inner nodes, $\int \psi_i \varphi_j = \delta_{ij}$, so that a relation
//! has the degrees of freedom of a few facets of `from` alone, `[wohlmuth2000]`. They reproduce the polynomials of
//! degree p − 1, as the orders of degree p need, on any facets: see [`multipliers`].

mod clip;
mod moments;
mod multipliers;
mod side;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use femtile_device::parallel;

use crate::space::{CellFacet, Space};
use multipliers::Multipliers;
use side::SideFacets;

/// Two sides of which one follows the other.
pub struct SidePair<'s> {
    /// The facets that determine a function.
    pub from: &'s [CellFacet],
    /// Those that follow.
    pub to: &'s [CellFacet],
    /// The rigid motion that takes points of `to` to those of `from`.
    pub motion: &'s (dyn Fn([f64; 3]) -> [f64; 3] + Sync),
    /// The distance up to which facets lie on each other; by default a hundredth of the size of a facet.
    pub gap: Option<f64>,
    /// The density of the measure of integrals at a point of a facet of `from`; none for 1.
    pub density: Option<&'s (dyn Fn(CellFacet, [f64; 3]) -> f64 + Sync)>,
}

/// Relations of the nodes of a side that follows.
#[derive(Debug, Clone)]
pub struct Mortar {
    /// That of each node by mortar projection, or none for its interpolation.
    pub relations: Vec<Option<Vec<(u32, f64)>>>,
    /// The positions in [`SidePair::to`] of facets of which the other side misses a part or covers it twice; their nodes are interpolated.
    pub missed: Vec<usize>,
}

/// A degree of freedom of a side that follows another one.
#[derive(Debug, Clone)]
pub struct SideNode {
    /// Its number.
    pub dof: u32,
    /// Its place.
    pub point: [f64; 3],
    /// Its relation by interpolation: the degrees of freedom of the other side and the values of their functions at this place.
    pub terms: Vec<(u32, f64)>,
}

/// The cosine of the angle up to which facets of a side that meet are smooth, and facets of both sides may lie on each other.
const SMOOTH: f64 = std::f64::consts::FRAC_1_SQRT_2;

/// Coefficients that are rounding.
const SMALL: f64 = 1e-13;

impl Space<'_> {
    /// Returns the relation of each node of the side that follows, by mortar projection; none where that is its interpolation: on the rim
    /// of the side, where facets meet at an angle or lack facets of the other side, and everywhere if each facet lies in one of
    /// the other side.
    ///
    /// Facets lie on each other if their planes are at an angle of at most 45°; of facets on top of each other the nearest one counts.
    ///
    /// `nodes` are all degrees of freedom of `to`, each once. The coefficients of a relation have the sum 1, and functions of degree p of
    /// both sides that are the same polynomial fulfil the relations, up to rounding.
    ///
    /// # Cost
    /// That of clipping the facets. $8 n (n + k)$ bytes for each facet with n functions and k of the other side on it: 0.2 kB for
    /// intervals of degree 2, 2 to 4 kB for squares of degree 2.
    ///
    /// # Panics
    /// If `nodes` lack a degree of freedom of `to`.
    pub fn mortar(&self, sides: &SidePair<'_>, nodes: &[SideNode]) -> Mortar {
        if self.is_nested(sides, nodes) {
            return Mortar { relations: vec![None; nodes.len()], missed: Vec::new() };
        }
        let moments = self.moments(sides);
        let is_taken: Vec<bool> = moments.iter().map(|own| own.projection.is_some()).collect();
        let missed = (0..is_taken.len()).filter(|&facet| !is_taken[facet]).collect();
        let side = SideFacets::new(self, sides, nodes, is_taken);
        let multipliers = Multipliers::new(self.element().degree(), &side, &moments, nodes);
        let relation = |node: usize| {
            let (of_facets, of_rim) = (&multipliers.of_facets[node], &multipliers.of_rim[node]);
            if side.is_rim[node] {
                return None;
            }
            let mut terms = Vec::new();
            for &(facet, own, weight) in of_facets {
                let of_facet = moments[facet].projection.iter().flatten();
                terms.extend(of_facet.map(|(dof, values)| (*dof, weight * values[own])));
            }
            for &(rim, weight) in of_rim {
                terms.extend(nodes[rim].terms.iter().map(|&(dof, c)| (dof, weight * c)));
            }
            terms.sort_by_key(|(dof, _)| *dof);
            let of_dof = terms.chunk_by(|a, b| a.0 == b.0);
            let sums = of_dof.map(|terms| (terms[0].0, terms.iter().map(|(_, c)| c).sum::<f64>()));
            Some(sums.filter(|(_, c)| c.abs() > SMALL).collect())
        };
        Mortar { relations: parallel::map(nodes.len(), 16, relation), missed }
    }

    /// Returns whether each facet that follows lies in one of the other side, where interpolation is the projection.
    fn is_nested(&self, sides: &SidePair<'_>, nodes: &[SideNode]) -> bool {
        let place: HashMap<u32, &SideNode> = nodes.iter().map(|node| (node.dof, node)).collect();
        let mut around: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut dofs = vec![0; self.element().n_dofs()];
        let mut of_facet = |at: CellFacet| -> Vec<u32> {
            self.cell_dofs(at.position, &mut dofs);
            self.element().facets()[at.facet].dofs.iter().map(|&local| dofs[local]).collect()
        };
        let from: Vec<Vec<u32>> = sides.from.iter().map(|&at| of_facet(at)).collect();
        for (own, number) in from.iter().zip(0_u32..) {
            own.iter().for_each(|&dof| around.entry(dof).or_default().push(number));
        }
        sides.to.iter().all(|&at| {
            let own = of_facet(at);
            let terms = || own.iter().flat_map(|dof| &place[dof].terms);
            let has_all = |facet: &&u32| terms().all(|(dof, _)| from[**facet as usize].contains(dof));
            let of_first = terms().next().and_then(|(dof, _)| around.get(dof));
            of_first.is_some_and(|facets| facets.iter().any(|facet| has_all(&facet)))
        })
    }
}
