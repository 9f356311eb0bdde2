//! Values of a discrete function at points of the mesh, and integrals of it.

use femtile_space::geometry::inverse;
use femtile_space::{PointMap, Space, SpaceError};

/// Steps of Newton's method for the map of a cell.
const STEPS: usize = 30;

/// How far outside of the reference cell a point may be found.
const OUTSIDE: f64 = 1e-9;

/// Returns the values of all components at a point; none if it lies in no cell.
pub(super) fn value_at(space: &Space<'_>, u: &[f64], n: usize, point: [f64; 3]) -> Option<Vec<f64>> {
    let (position, reference) = locate(space, point)?;
    let (table, mut dofs) = (space.element().tabulate(&[reference]), vec![0; space.element().n_dofs()]);
    space.cell_dofs(position, &mut dofs);
    let value = |component: usize| {
        dofs.iter().zip(table.values(0)).map(|(&dof, shape)| shape * u[dof as usize * n + component]).sum()
    };
    Some((0..n).map(value).collect())
}

/// Returns a cell that has a point, by its position, and the point of the reference cell.
pub(super) fn locate(space: &Space<'_>, point: [f64; 3]) -> Option<(usize, [f64; 3])> {
    (0..space.n_cells()).find_map(|position| {
        let near = is_near(space, position, point);
        Some((position, near.then(|| inverted(space, position, point)).flatten()?))
    })
}

/// Returns whether a point lies in the box of the corners of a cell, widened by half for curved sides.
fn is_near(space: &Space<'_>, position: usize, point: [f64; 3]) -> bool {
    let (mesh, corners) = (space.mesh(), space.corners(position));
    let along = |axis: usize| corners.iter().map(move |&node| mesh.points[node as usize][axis]);
    let bounds = [0, 1, 2].map(|axis| {
        along(axis).fold([f64::INFINITY, f64::NEG_INFINITY], |[low, high], x| [low.min(x), high.max(x)])
    });
    let size = bounds.iter().map(|[low, high]| high - low).fold(0.0, f64::max);
    let margin = size * if mesh.curved.is_some() { 0.5 } else { 1e-6 };
    (0..3).all(|axis| point[axis] >= bounds[axis][0] - margin && point[axis] <= bounds[axis][1] + margin)
}

/// Inverts the map of a cell at a point; none outside of the cell.
fn inverted(space: &Space<'_>, position: usize, point: [f64; 3]) -> Option<[f64; 3]> {
    let (d, is_simplex) = (space.mesh().dimension(), space.mesh().kind.is_simplex());
    let middle = if is_simplex { 1.0 / (d + 1) as f64 } else { 0.5 };
    let mut reference = std::array::from_fn(|axis| if axis < d { middle } else { 0.0 });
    let mut map = PointMap::default();
    for _ in 0..STEPS {
        // A step may leave the cell, where the map may fold.
        space.map(position, &[reference], &mut map).ok()?;
        let inverse = inverse(&map.jacobians[0]);
        let distance: [f64; 3] = std::array::from_fn(|i| point[i] - map.points[0][i]);
        let step: [f64; 3] =
            std::array::from_fn(
                |a| if a < d { (0..d).map(|i| inverse[a][i] * distance[i]).sum() } else { 0.0 },
            );
        (0..d).for_each(|a| reference[a] += step[a]);
        if step.iter().all(|step| step.abs() < 1e-12) {
            break;
        }
    }
    let is_inside = match is_simplex {
        true => reference.iter().all(|&x| x >= -OUTSIDE) && reference.iter().sum::<f64>() <= 1.0 + OUTSIDE,
        false => reference.iter().all(|&x| (-OUTSIDE..=1.0 + OUTSIDE).contains(&x)),
    };
    is_inside.then_some(reference)
}

/// Returns the integral of a function of the point and the values of u.
pub(super) fn integral(
    space: &Space<'_>,
    u: &[f64],
    n: usize,
    f: &dyn Fn([f64; 3], &[f64]) -> f64,
) -> Result<f64, SpaceError> {
    let element = space.element();
    let rule = element.quadrature(2 * element.degree() + 2);
    let (table, mapping) = (element.tabulate(&rule.points), space.mapping(&rule.points));
    let (mut map, mut dofs) = (PointMap::default(), vec![0; element.n_dofs()]);
    let (mut sum, mut values) = (0.0, vec![0.0; n]);
    for position in 0..space.n_cells() {
        mapping.of_cell(position, &mut map)?;
        space.cell_dofs(position, &mut dofs);
        for (q, weight) in rule.weights.iter().enumerate() {
            for (component, value) in values.iter_mut().enumerate() {
                let terms = dofs.iter().zip(table.values(q));
                *value = terms.map(|(&dof, shape)| shape * u[dof as usize * n + component]).sum();
            }
            sum += weight * map.determinants[q].abs() * f(map.points[q], &values);
        }
    }
    Ok(sum)
}
