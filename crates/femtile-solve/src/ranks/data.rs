//! The coefficients and conditions of a part of a mesh.

use std::collections::HashSet;
use std::sync::Arc;

use femtile_comm::Comm;
use femtile_fem::{BoundaryCondition, Coefficient, Condition};
use femtile_mesh::partition::MeshPart;
use femtile_space::TensorSpace;

use super::rows::agreed;
use crate::SolveError;
use crate::discretization::Discretization;

/// Returns a problem on the part of a rank; none if the rank has no part. Collective.
pub(crate) fn on_part<'p>(
    comm: &Comm,
    (problem, winners): (&'p Discretization<'_>, &[Option<u32>]),
    part: Option<&'p MeshPart>,
) -> Result<Option<Discretization<'p>>, SolveError> {
    let space = match (&problem.space, part) {
        (Some(whole), Some(part)) if problem.divided.is_none() => {
            TensorSpace::new(&part.mesh, whole.degree()).map(|space| Some(Arc::new(space)))
        }
        // The space of the problem is that of the part.
        (own, _) => Ok(own.clone().map(|own| own as Arc<TensorSpace<'p>>)),
    };
    let space = agreed(comm, space.map_err(SolveError::from))?;
    Ok(part.map(|part| problem.on_part(part, winners, space)))
}

impl Discretization<'_> {
    /// Returns the problem on the part of a rank, with a space on it; `winners` has the condition of each boundary facet of its
    /// mesh. Dirichlet values of ghosts are those that the part has facets for.
    pub(crate) fn on_part<'p>(
        &self,
        part: &'p MeshPart,
        winners: &[Option<u32>],
        space: Option<Arc<TensorSpace<'p>>>,
    ) -> Discretization<'p> {
        let is_stated_there = self.divided.is_some();
        let of_part =
            |given: &Coefficient| if is_stated_there { given.clone() } else { given.on_cells(&part.cells) };
        let conditions = |conditions: &Vec<BoundaryCondition>| match is_stated_there {
            true => won(conditions, winners),
            false => conditions_of(conditions, winners, part),
        };
        Discretization {
            mesh: &part.mesh,
            boundary: Arc::new(part.boundary.clone()),
            sigma: of_part(&self.sigma),
            lambda: of_part(&self.lambda),
            capacity: of_part(&self.capacity),
            sources: self.sources.iter().map(of_part).collect(),
            conditions: self.conditions.iter().map(conditions).collect(),
            config: self.config,
            space,
            initial: self.initial.clone(),
            overlaps: Vec::new(),
            inner_facets: Vec::new(),
            node_overlaps: Vec::new(),
            warnings: Vec::new(),
            divided: None,
        }
    }
}

/// The conditions of a problem on the part, each on the facets where it holds.
pub(super) fn won(conditions: &[BoundaryCondition], winners: &[Option<u32>]) -> Vec<BoundaryCondition> {
    let of = |(number, given): (u32, &BoundaryCondition)| {
        let wins = |facet: &u32| winners[*facet as usize] == Some(number);
        let facets = given.facets.iter().copied().filter(wins).collect();
        BoundaryCondition { facets, condition: given.condition.clone() }
    };
    (0..).zip(conditions).map(of).collect()
}

/// The conditions of a problem on the whole mesh, restricted to the facets of the part where they hold.
pub(super) fn conditions_of(
    conditions: &[BoundaryCondition],
    winners: &[Option<u32>],
    part: &MeshPart,
) -> Vec<BoundaryCondition> {
    let mut facets = vec![Vec::new(); conditions.len()];
    for (local, &facet) in part.facets.iter().enumerate() {
        if let Some(winner) = winners[facet as usize] {
            facets[winner as usize].push(local as u32);
        }
    }
    let on_part = |given: &Coefficient| given.on_cells(&part.cells);
    let of_condition = |(given, facets): (&BoundaryCondition, Vec<u32>)| {
        let condition = match &given.condition {
            Condition::Neumann(flux) => Condition::Neumann(on_part(flux)),
            Condition::Robin { coefficient, value } => {
                Condition::Robin { coefficient: on_part(coefficient), value: on_part(value) }
            }
            Condition::Dirichlet(value) => Condition::Dirichlet(on_part(value)),
            Condition::DirichletAtNodes { nodes, value } => {
                Condition::DirichletAtNodes { nodes: nodes_of(nodes, part), value: on_part(value) }
            }
        };
        BoundaryCondition { facets, condition }
    };
    conditions.iter().zip(facets).map(of_condition).collect()
}

/// The local numbers of those global nodes that the part has.
fn nodes_of(nodes: &[u32], part: &MeshPart) -> Vec<u32> {
    let named: HashSet<u32> = nodes.iter().copied().collect();
    let here = part.nodes.iter().zip(0..).filter(|(node, _)| named.contains(node));
    here.map(|(_, number)| number).collect()
}
