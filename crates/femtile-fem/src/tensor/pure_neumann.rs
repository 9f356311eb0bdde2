//! Detection of pure Neumann problems.

use femtile_mesh::check::components;
use femtile_space::TensorSpace;

use crate::FemError;
use crate::assembly::floating;
use crate::constraints::{dirichlet_facets, dirichlet_nodes};
use crate::evaluation::Evaluation;
use crate::forms::{Compiled, Form, not_negative};
use crate::tensor::SOURCE_RULE;

/// Returns whether the solution is determined up to a constant only: λ = 0, and no condition holds it.
///
/// # Errors
/// [`FemError::Floating`] if this is true of one of several components; a λ that is not finite or negative.
pub(super) fn is_pure_neumann(
    space: &TensorSpace<'_>,
    form: &Form<'_>,
    winners: &[Option<u32>],
    reacting: &[u32],
) -> Result<bool, FemError> {
    match held(space, form, winners, reacting)? {
        None => Ok(false),
        Some(held) => floating::floats(form.mesh, &components(form.mesh), |node| held[node]),
    }
}

/// Returns whether a condition or a reaction holds the solution at each node; none if a reaction does so
/// everywhere.
///
/// # Errors
/// A λ that is not finite or negative.
pub(super) fn held(
    space: &TensorSpace<'_>,
    form: &Form<'_>,
    winners: &[Option<u32>],
    reacting: &[u32],
) -> Result<Option<Vec<bool>>, FemError> {
    if form.lambda.as_constant().is_some_and(|lambda| lambda > 0.0) {
        return Ok(None);
    }
    let mut held = vec![false; form.mesh.n_nodes()];
    let facets = dirichlet_facets(form, winners).map(|(facet, _)| facet);
    for facet in facets.chain(reacting.iter().map(|&facet| facet as usize)) {
        form.boundary.facet(facet).iter().for_each(|&node| held[node as usize] = true);
    }
    dirichlet_nodes(form)?.into_iter().for_each(|(node, _)| held[node as usize] = true);
    if form.lambda.as_constant() != Some(0.0) {
        for cell in reacting_cells(space, form)? {
            form.mesh.cell(cell as usize).iter().for_each(|&node| held[node as usize] = true);
        }
    }
    Ok(Some(held))
}

/// Returns the cells in which λ is positive somewhere.
fn reacting_cells(space: &TensorSpace<'_>, form: &Form<'_>) -> Result<Vec<u32>, FemError> {
    let lambda = Compiled::scalar("lambda", form.lambda, form.mesh)?;
    let evaluation = Evaluation::on_tensor_cells(space, SOURCE_RULE);
    let cells = evaluation.map(|found, points| {
        points.eval(found, &lambda)?;
        not_negative("lambda", &found.given, &found.points)?;
        Ok(found.given.iter().any(|&value| value > 0.0).then_some(points.cell))
    })?;
    Ok(cells.into_iter().flatten().collect())
}
