//! Conditions of a problem that take facets or nodes from others.

use super::{Given, Kind, Poisson};
use crate::SolveError;
use crate::overlap::{Overlap, overlaps, overlaps_of_ranks};

impl Poisson<'_> {
    /// Returns conditions that later ones replace on some facets. Collective if the mesh is distributed.
    pub(super) fn facet_overlaps(&self) -> Result<Vec<Overlap>, SolveError> {
        let holds: Vec<Vec<u32>> = self.conditions.iter().map(|given| given.facets.clone()).collect();
        let is_on_all = |i: usize| self.conditions[i].is_on_all();
        Ok(match &self.divided {
            None => overlaps(&holds, self.boundary.len(), is_on_all),
            Some(divided) => {
                let is_own = |facet| divided.has_facet(facet);
                overlaps_of_ranks(&divided.comm, (&holds, self.boundary.len()), is_own, is_on_all)?
            }
        })
    }

    /// Returns conditions at nodes that lose some to later values; `found` are those that lose facets.
    pub(super) fn node_overlaps(&self, found: &[Overlap]) -> Result<Vec<Overlap>, SolveError> {
        if !self.conditions.iter().any(|given| given.named_nodes().is_some()) {
            return Ok(Vec::new());
        }
        let held = |given: &Given| match (given.named_nodes(), &given.kind) {
            (Some(nodes), _) => nodes.to_vec(),
            (None, Kind::Dirichlet(_)) => {
                let nodes = given.facets.iter().flat_map(|&facet| self.boundary.facet(facet as usize));
                let mut nodes: Vec<u32> = nodes.copied().collect();
                nodes.sort_unstable();
                nodes.dedup();
                nodes
            }
            (None, _) => Vec::new(),
        };
        let holds: Vec<Vec<u32>> = self.conditions.iter().map(held).collect();
        let is_known =
            |new: &Overlap| found.iter().any(|old| (old.loser, old.taker) == (new.loser, new.taker));
        let of = (&holds[..], self.mesh.n_nodes());
        let mut overlaps = match &self.divided {
            None => overlaps(of.0, of.1, |_| false),
            Some(divided) => overlaps_of_ranks(&divided.comm, of, |node| divided.has_node(node), |_| false)?,
        };
        overlaps.retain(|new| self.conditions[new.loser].named_nodes().is_some() && !is_known(new));
        Ok(overlaps)
    }
}
