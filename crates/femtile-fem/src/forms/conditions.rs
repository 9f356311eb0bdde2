//! The conditions on the boundary of a mesh.

use femtile_mesh::Mesh;
use femtile_mesh::check::BoundaryFacets;

use super::{BoundaryCondition, Condition, Form};
use crate::FemError;

/// The conditions of a problem, with the one that holds on each boundary facet: the last that names it.
#[derive(Debug, Clone)]
pub struct Conditions<'a> {
    pub(crate) mesh: &'a Mesh,
    pub(crate) boundary: &'a BoundaryFacets,
    pub(crate) list: &'a [BoundaryCondition],
    holding: Vec<Option<u32>>,
}

impl<'a> Form<'a> {
    /// Finds the condition that holds on each boundary facet.
    ///
    /// # Errors
    /// Errors of [`Conditions::new`].
    pub fn holding_conditions(&self) -> Result<Conditions<'a>, FemError> {
        Conditions::new(self.mesh, self.boundary, self.conditions)
    }
}

impl<'a> Conditions<'a> {
    /// Finds the condition that holds on each boundary facet.
    ///
    /// # Errors
    /// [`FemError::NoSuchFacet`] for a facet beyond the boundary, [`FemError::NoSuchNode`] for a node outside the mesh.
    pub fn new(
        mesh: &'a Mesh,
        boundary: &'a BoundaryFacets,
        list: &'a [BoundaryCondition],
    ) -> Result<Self, FemError> {
        let (n_facets, n_nodes) = (boundary.len(), mesh.n_nodes());
        let mut holding = vec![None; n_facets];
        for (condition, entry) in list.iter().enumerate() {
            for &facet in &entry.facets {
                let Some(holds) = holding.get_mut(facet as usize) else {
                    return Err(FemError::NoSuchFacet { condition, facet, n_facets });
                };
                *holds = Some(condition as u32);
            }
            if let Condition::DirichletAtNodes { nodes, .. } = &entry.condition
                && let Some(&node) = nodes.iter().find(|&&node| node as usize >= n_nodes)
            {
                return Err(FemError::NoSuchNode { condition, node, n_nodes });
            }
        }
        Ok(Self { mesh, boundary, list, holding })
    }

    /// Returns the number of the condition on each boundary facet.
    pub fn into_holding(self) -> Vec<Option<u32>> {
        self.holding
    }

    /// Iterates over the facets where a condition holds, ascending.
    pub(crate) fn facets_of(&self, condition: usize) -> impl Iterator<Item = u32> {
        let numbered = (0..).zip(&self.holding);
        numbered.filter(move |(_, holds)| **holds == Some(condition as u32)).map(|(facet, _)| facet)
    }

    /// Iterates over facets with a Dirichlet condition, and the number of the condition.
    pub(crate) fn dirichlet_facets(&self) -> impl Iterator<Item = (u32, u32)> {
        let numbered = (0..).zip(&self.holding).filter_map(|(facet, holds)| Some((facet, (*holds)?)));
        numbered.filter(|&(_, number)| self.list[number as usize].condition.given_value().is_some())
    }

    /// Iterates over the nodes of the mesh with given u, and the number of the condition.
    pub(crate) fn dirichlet_nodes(&self) -> impl Iterator<Item = (u32, u32)> {
        (0..).zip(self.list).flat_map(|(number, entry)| {
            let nodes = match &entry.condition {
                Condition::DirichletAtNodes { nodes, .. } => &nodes[..],
                _ => &[],
            };
            nodes.iter().map(move |&node| (node, number))
        })
    }
}
