//! The coefficients and conditions of a part of a mesh.

use std::borrow::Cow;
use std::collections::HashSet;

use femtile_fem::{BoundaryCondition, Coefficient, Condition, Form};
use femtile_mesh::partition::MeshPart;

use crate::discretization::Discretization;

/// Coefficients and conditions by the cells, facets and nodes of a part.
pub(crate) struct PartData<'p> {
    sigma: Cow<'p, Coefficient>,
    lambda: Cow<'p, Coefficient>,
    source: Cow<'p, Coefficient>,
    conditions: Vec<BoundaryCondition>,
}

impl<'p> PartData<'p> {
    /// Takes the data of a problem that is stated on the part; `winners` has the condition of each facet of
    /// it.
    pub fn local(problem: &'p Discretization<'_>, winners: &[Option<u32>]) -> Self {
        let form = problem.form(0);
        let [sigma, lambda, source] =
            [&problem.sigma, &problem.lambda, &problem.sources[0]].map(Cow::Borrowed);
        let conditions = won(form.conditions, winners);
        Self { sigma, lambda, source, conditions }
    }

    /// Restricts the data of a problem on the whole mesh to the part; `winners` has the condition of each
    /// boundary facet of the whole mesh.
    pub fn new(problem: &Discretization<'_>, winners: &[Option<u32>], part: &MeshPart) -> Self {
        let whole = problem.form(0);
        let [sigma, lambda, source] =
            [whole.sigma, whole.lambda, whole.source].map(|given| Cow::Owned(given.on_cells(&part.cells)));
        Self { sigma, lambda, source, conditions: conditions_of(whole.conditions, winners, part) }
    }

    /// Removes Dirichlet conditions.
    pub fn natural(self) -> Self {
        let is_natural = |given: &BoundaryCondition| given.condition.given_value().is_none();
        Self { conditions: self.conditions.into_iter().filter(is_natural).collect(), ..self }
    }

    /// Returns the form of the part.
    pub fn form<'a>(&'a self, part: &'a MeshPart) -> Form<'a> {
        Form {
            mesh: &part.mesh,
            boundary: &part.boundary,
            sigma: &self.sigma,
            lambda: &self.lambda,
            source: &self.source,
            conditions: &self.conditions,
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
