//! Components of a mesh without any constraint or reaction.

use std::ops::Range;

use femtile_mesh::Mesh;
use femtile_mesh::check::Components;
use femtile_space::Space;

use crate::FemError;
use crate::evaluation::Evaluation;
use crate::forms::{Compiled, Conditions, FacetTerm, Form, not_negative};
use crate::functionals::source_rule;
use crate::tensor::SOURCE_RULE;

/// Cells in which a reaction is evaluated at a time.
const BLOCK: usize = 1 << 14;

/// Returns whether the solution is determined up to a constant only: nothing holds it, and the mesh is connected.
///
/// `held` are nodes where a condition holds the solution. Cells where a reaction does are asked for in blocks, until each component
/// has one.
///
/// # Errors
/// [`FemError::Floating`] if the mesh has several components and nothing holds one of them; errors of `reacting`.
pub(crate) fn floats(
    mesh: &Mesh,
    components: &Components,
    mut held: impl Iterator<Item = u32>,
    reacting: impl Fn(Range<usize>) -> Result<Vec<u32>, FemError>,
) -> Result<bool, FemError> {
    let (mut is_held, mut n_left) = (vec![false; components.count], components.count);
    // Returns whether every component is held.
    let mut hold = |node: u32| {
        let component = components.of_node[node as usize] as usize;
        if let Some(is_held) = is_held.get_mut(component).filter(|is_held| !**is_held) {
            *is_held = true;
            n_left -= 1;
        }
        n_left == 0
    };
    if held.any(&mut hold) {
        return Ok(false);
    }
    for begin in (0..mesh.n_cells()).step_by(BLOCK) {
        for cell in reacting(begin..mesh.n_cells().min(begin + BLOCK))? {
            if mesh.cell(cell as usize).iter().any(|&node| hold(node)) {
                return Ok(false);
            }
        }
    }
    has_floating(mesh, components, &is_held)
}

/// Iterates over the nodes of the mesh where conditions hold the solution.
pub(crate) fn held_by_conditions(
    conditions: &Conditions<'_>,
    terms: &[FacetTerm],
) -> impl Iterator<Item = u32> {
    let facets = conditions.dirichlet_facets().map(|(facet, _)| facet);
    let facets = facets.chain(terms.iter().filter(|term| term.reacts()).map(|term| term.facet));
    let nodes = facets.flat_map(|facet| conditions.boundary.facet(facet as usize).iter().copied());
    nodes.chain(conditions.dirichlet_nodes().map(|(node, _)| node))
}

/// The reaction λ of a form, evaluated to find the cells that it holds.
pub(crate) struct Reaction<'a> {
    lambda: Compiled<'a>,
    evaluation: Evaluation<'a>,
}

impl<'a> Reaction<'a> {
    /// Returns none if there is no reaction.
    ///
    /// # Errors
    /// A λ that does not belong to the mesh.
    pub fn new(space: &'a Space<'a>, form: &Form<'a>) -> Result<Option<Self>, FemError> {
        if form.lambda.as_constant() == Some(0.0) {
            return Ok(None);
        }
        let lambda = Compiled::scalar("lambda", form.lambda, form.mesh)?;
        let evaluation = Evaluation::new(space, source_rule(space, form.lambda, SOURCE_RULE));
        Ok(Some(Self { lambda, evaluation }))
    }

    /// Returns the cells at some positions in which λ is positive somewhere.
    ///
    /// # Errors
    /// A λ that is not finite or negative, a folded quadrilateral or hexahedron.
    pub fn cells(&self, positions: Range<usize>) -> Result<Vec<u32>, FemError> {
        let positions: Vec<usize> = positions.collect();
        let cells = self.evaluation.map_at(&positions, |found, points, _| {
            points.eval(found, &self.lambda)?;
            not_negative("lambda", &found.given, &found.points)?;
            Ok(found.given.iter().any(|&value| value > 0.0).then_some(points.cell))
        })?;
        Ok(cells.into_iter().flatten().collect())
    }
}

/// Returns whether a condition or a reaction holds the solution at each node of a mesh that may be a part of another; `held` are
/// the nodes where a condition does.
///
/// # Errors
/// As [`Reaction::cells`].
pub(crate) fn held_nodes(
    space: &Space<'_>,
    form: &Form<'_>,
    held: impl Iterator<Item = u32>,
) -> Result<Vec<bool>, FemError> {
    if form.lambda.as_constant().is_some_and(|lambda| lambda > 0.0) {
        return Ok(vec![true; form.mesh.n_nodes()]);
    }
    let mut is_held = vec![false; form.mesh.n_nodes()];
    held.for_each(|node| is_held[node as usize] = true);
    if let Some(reaction) = Reaction::new(space, form)? {
        for cell in reaction.cells(0..form.mesh.n_cells())? {
            form.mesh.cell(cell as usize).iter().for_each(|&node| is_held[node as usize] = true);
        }
    }
    Ok(is_held)
}

/// Returns whether the solution is determined up to a constant only, from whether each component has a node that is held.
///
/// # Errors
/// [`FemError::Floating`] if there are several components and one has no held node.
pub fn has_floating(mesh: &Mesh, components: &Components, is_held: &[bool]) -> Result<bool, FemError> {
    let Some(floating) = is_held.iter().position(|is_held| !is_held) else {
        return Ok(false);
    };
    if components.count == 1 {
        return Ok(true);
    }
    let belongs = |&(_, &component): &(usize, &u32)| component as usize == floating;
    let mut nodes = components.of_node.iter().enumerate().filter(belongs).map(|(node, _)| node);
    let node = nodes.next().unwrap_or(0);
    let (n_components, n_nodes) = (components.count, 1 + nodes.count());
    Err(FemError::Floating { n_components, node, point: mesh.points[node], n_nodes })
}

/// Largest accepted imbalance of sources and fluxes of a pure Neumann problem, relative to their size.
///
/// Balanced data are balanced only up to quadrature and the approximation of curved boundaries once they are
/// discretized; the rest is projected away.
pub const BALANCE_TOLERANCE: f64 = 1e-2;

/// The sum of the facet contributions to a right side, and of their absolute values.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Flux {
    integral: f64,
    size: f64,
}

impl Flux {
    /// Sums the loads of facets.
    pub fn of(terms: &[FacetTerm]) -> Self {
        let loads = || terms.iter().flat_map(|term| &term.load);
        // A sum of no terms is −0.
        Self { integral: loads().sum::<f64>() + 0.0, size: loads().map(|load| load.abs()).sum() }
    }
}

/// Checks that the right side of a pure Neumann problem sums to zero up to [`BALANCE_TOLERANCE`], subtracts its mean,
/// and returns the mean's size relative to the right side.
///
/// # Errors
/// [`FemError::Incompatible`] if it does not.
pub(crate) fn balance(rhs: &mut [f64], flux: Flux) -> Result<f64, FemError> {
    let (total, flux_integral) = (rhs.iter().sum::<f64>(), flux.integral);
    let size = rhs.iter().map(|b| b.abs()).sum::<f64>() + flux.size;
    if total.abs() > BALANCE_TOLERANCE * size {
        return Err(FemError::Incompatible { source_integral: total - flux_integral, flux_integral });
    }
    // The second pass removes rounding errors of the first.
    for _ in 0..2 {
        let mean = rhs.iter().sum::<f64>() / rhs.len() as f64;
        rhs.iter_mut().for_each(|b| *b -= mean);
    }
    Ok(if size > 0.0 { total.abs() / size } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile_mesh::CellKind;
    use femtile_mesh::check::components;

    fn triangles(cells: Vec<u32>) -> Mesh {
        let n = cells.iter().max().unwrap() + 1;
        Mesh::new((0..n).map(|i| [f64::from(i), 0.0, 0.0]).collect(), CellKind::Triangle, cells).unwrap()
    }

    #[test]
    fn a_component_that_nothing_holds_is_an_error_unless_it_is_the_only_one() {
        let two = triangles(vec![0, 5, 3, 1, 4, 2]);
        let none = |_: Range<usize>| Ok(Vec::new());
        assert!(matches!(
            floats(&two, &components(&two), [5].into_iter(), none),
            Err(FemError::Floating { n_components: 2, node: 1, n_nodes: 3, .. })
        ));
        assert!(!floats(&two, &components(&two), [5, 4].into_iter(), none).unwrap());
        assert!(!floats(&two, &components(&two), [5].into_iter(), |_| Ok(vec![1])).unwrap());
        let one = triangles(vec![0, 1, 2]);
        assert!(floats(&one, &components(&one), [].into_iter(), none).unwrap());
        let never =
            |_: Range<usize>| -> Result<Vec<u32>, FemError> { panic!("the reaction does not matter") };
        assert!(!floats(&one, &components(&one), [2].into_iter(), never).unwrap());
    }
}
