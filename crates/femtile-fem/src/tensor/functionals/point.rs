use rayon::prelude::*;

use super::Line;
use super::inverse_map::InverseMaps;
use crate::FemError;
use crate::dofs::TensorSpace;
use crate::functionals::box_tree::BoxTree;
use crate::tensor::check_length;
use femtile_device::parallel;

/// The value of `u` at a point, by the first cell on the way that contains it.
///
/// # Cost
/// A box around every cell; Newton's method for the map of those whose boxes hold the point.
/// # Errors
/// [`FemError::Outside`] with the nearest cell and its distance, [`FemError::Length`] when `u` does not have one
/// entry a degree of freedom.
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

/// The values of `u` at points, each by the first cell on the way that contains it; none outside the mesh.
///
/// # Cost
/// A tree of boxes around the cells; Newton's method for the maps of cells whose boxes hold a point.
/// # Errors
/// [`FemError::Length`] when `u` does not have one entry a degree of freedom.
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

/// The values of `u` at `n` evenly spaced points from one point to another, both of them included.
///
/// # Errors
/// As [`values_at`].
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

/// The value at reference coordinates of the cell at a position.
fn value_in(space: &TensorSpace<'_>, u: &[f64], position: usize, at: [f64; 3]) -> f64 {
    let (d, n) = (space.dimension(), space.degree() + 1);
    let shapes = space.shapes().values(&at[..d]);
    let mut dofs = vec![0; space.dofs_per_cell()];
    space.cell_dofs(position, &mut dofs);
    let shape = |k: usize| (0..d).map(|a| shapes.row(a)[k / n.pow(a as u32) % n]).product::<f64>();
    dofs.iter().enumerate().map(|(k, &dof)| u[dof as usize] * shape(k)).sum()
}

/// Looks at cells by the distance of their boxes until no nearer one can come.
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
