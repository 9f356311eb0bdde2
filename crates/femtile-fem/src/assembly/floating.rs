//! Components of a mesh without any constraint or reaction.

use femtile_mesh::Mesh;
use femtile_mesh::check::Components;

use crate::FemError;

/// Returns whether the solution is determined up to a constant only: no node is held, and the mesh is connected.
///
/// `held` returns whether a condition or reaction at a node fixes the solution.
///
/// # Errors
/// [`FemError::Floating`] if the mesh has several components and one of them has no held node.
pub(crate) fn floats(
    mesh: &Mesh,
    components: &Components,
    held: impl Fn(usize) -> bool,
) -> Result<bool, FemError> {
    let mut is_held = vec![false; components.count];
    for (node, &component) in components.of_node.iter().enumerate() {
        if let Some(is_held) = is_held.get_mut(component as usize) {
            *is_held |= held(node);
        }
    }
    has_floating(mesh, components, &is_held)
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

/// Checks that the right side of a pure Neumann problem sums to zero up to [`BALANCE_TOLERANCE`], subtracts its mean,
/// and returns the mean's size relative to the right side.
///
/// `flux_integral` and `flux_size` are the sums of facet contributions to `rhs` and of their absolute values.
///
/// # Errors
/// [`FemError::Incompatible`] if it does not.
pub(crate) fn balance(rhs: &mut [f64], flux_integral: f64, flux_size: f64) -> Result<f64, FemError> {
    let total: f64 = rhs.iter().sum();
    let size = rhs.iter().map(|b| b.abs()).sum::<f64>() + flux_size;
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
        assert!(matches!(
            floats(&two, &components(&two), |node| node == 5),
            Err(FemError::Floating { n_components: 2, node: 1, n_nodes: 3, .. })
        ));
        assert!(!floats(&two, &components(&two), |node| node == 5 || node == 4).unwrap());
        let one = triangles(vec![0, 1, 2]);
        assert!(floats(&one, &components(&one), |_| false).unwrap());
        assert!(!floats(&one, &components(&one), |node| node == 2).unwrap());
    }
}
