use rayon::prelude::*;

use super::inverse_map::InverseMaps;
use crate::FemError;
use crate::dofs::TensorSpace;
use crate::tensor::check_length;

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
    let boxes = (0..space.n_cells()).into_par_iter();
    let mut boxes: Vec<(f64, usize)> =
        boxes.map(|position| (maps.around(position).distance(point), position)).collect();
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
