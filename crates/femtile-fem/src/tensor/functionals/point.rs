use femtile_space::TensorSpace;
use rayon::prelude::*;

use super::Line;
use super::inverse_map::InverseMaps;
use crate::FemError;
use crate::functionals::box_tree::BoxTree;
use crate::tensor::check_length;
use femtile_device::parallel;

/// Returns the value of `u` at a point, from the first cell in the order of visits that contains it.
///
/// # Cost
/// A bounding box per cell; Newton's method for the maps of cells whose boxes contain the point.
/// # Errors
/// [`FemError::Outside`] with the nearest cell and its distance, [`FemError::Length`] unless `u` has one entry per
/// degree of freedom.
pub fn value_at(space: &TensorSpace<'_>, u: &[f64], point: [f64; 3]) -> Result<f64, FemError> {
    check_length(space, u)?;
    let maps = InverseMaps::new(space);
    let found = (0..space.n_cells())
        .into_par_iter()
        .find_map_first(|position| Some((position, maps.inside(position, point)?)));
    match found {
        Some((position, at)) => Ok(value_in(space, u, position, at)),
        None => Err(outside(space, &maps, point)),
    }
}

/// Returns the values of `u` at points, each from the first cell in the order of visits that contains it; none outside
/// the mesh.
///
/// # Cost
/// A bounding-box tree over the cells; Newton's method for the maps of cells whose boxes contain a point.
/// # Errors
/// [`FemError::Length`] unless `u` has one entry per degree of freedom.
pub fn values_at(
    space: &TensorSpace<'_>,
    u: &[f64],
    points: &[[f64; 3]],
) -> Result<Vec<Option<f64>>, FemError> {
    check_length(space, u)?;
    let maps = InverseMaps::new(space);
    let boxes = parallel::map(space.n_cells(), 1, |position| maps.around(position));
    let tree = BoxTree::new(&boxes);
    let value = |point: [f64; 3]| {
        let (position, at) = tree.first(point, |position| maps.inside(position as usize, point))?;
        Some(value_in(space, u, position as usize, at))
    };
    Ok(parallel::map(points.len(), 1, |i| value(points[i])))
}

/// Returns the values of `u` at `n` evenly spaced points from one point to another, both included.
///
/// # Errors
/// Errors of [`values_at`].
pub fn along(
    space: &TensorSpace<'_>,
    u: &[f64],
    from: [f64; 3],
    to: [f64; 3],
    n: usize,
) -> Result<Line, FemError> {
    let line = Line::new(from, to, n);
    Ok(Line { values: values_at(space, u, &line.points)?, ..line })
}

/// Returns the value at reference coordinates of the cell at a position.
fn value_in(space: &TensorSpace<'_>, u: &[f64], position: usize, at: [f64; 3]) -> f64 {
    let (d, n) = (space.dimension(), space.degree() + 1);
    let shapes = space.shapes().values(&at[..d]);
    let mut dofs = vec![0; space.dofs_per_cell()];
    space.cell_dofs(position, &mut dofs);
    let shape = |k: usize| (0..d).map(|a| shapes.row(a)[k / n.pow(a as u32) % n]).product::<f64>();
    dofs.iter().enumerate().map(|(k, &dof)| u[dof as usize] * shape(k)).sum()
}

/// Finds the nearest cell, in the order of the distance of bounding boxes.
fn outside(space: &TensorSpace<'_>, maps: &InverseMaps<'_>, point: [f64; 3]) -> FemError {
    let mut boxes =
        parallel::map(space.n_cells(), 1, |position| (maps.around(position).distance(point), position));
    boxes.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut distance, mut cell) = (f64::INFINITY, 0);
    for (lower_bound, position) in boxes {
        if lower_bound >= distance {
            break;
        }
        let found = maps.distance(position, point);
        if found < distance {
            (distance, cell) = (found, space.order()[position] as usize);
        }
    }
    FemError::Outside { point, distance, cell }
}
