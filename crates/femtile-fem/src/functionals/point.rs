use femtile_device::parallel;
use femtile_space::{CellPoint, Space};

use super::{Line, check_length};
use crate::FemError;

/// Returns the value of `u` at a point, from the first cell in the order of visits that contains it.
///
/// # Cost
/// A visit of the bounding boxes of all cells.
/// # Errors
/// [`FemError::Outside`] with the nearest cell and its distance, [`FemError::Length`] unless `u` has one entry per
/// degree of freedom.
pub fn value_at(space: &Space<'_>, u: &[f64], point: [f64; 3]) -> Result<f64, FemError> {
    values_at(space, u, &[point])?[0].ok_or_else(|| outside(space, point))
}

/// Returns the error of a point that lies outside the mesh, with the nearest cell.
pub fn outside(space: &Space<'_>, point: [f64; 3]) -> FemError {
    let (cell, distance) = space.nearest_cell(point).unwrap_or((0, f64::INFINITY));
    FemError::Outside { point, distance, cell }
}

/// Returns the values of `u` at points, each from the first cell in the order of visits that contains it; none outside
/// the mesh.
///
/// # Cost
/// That of [`Space::locate`].
/// # Errors
/// [`FemError::Length`] unless `u` has one entry per degree of freedom.
pub fn values_at(space: &Space<'_>, u: &[f64], points: &[[f64; 3]]) -> Result<Vec<Option<f64>>, FemError> {
    check_length(u, space.n_dofs())?;
    let found = space.locate(points);
    Ok(parallel::map(found.len(), 1, |i| found[i].map(|at| value_in(space, u, at))))
}

/// Returns the values of `u` at `n` evenly spaced points from one point to another, both included.
///
/// # Errors
/// Errors of [`values_at`].
pub fn along(space: &Space<'_>, u: &[f64], from: [f64; 3], to: [f64; 3], n: usize) -> Result<Line, FemError> {
    let line = Line::new(from, to, n);
    Ok(Line { values: values_at(space, u, &line.points)?, ..line })
}

fn value_in(space: &Space<'_>, u: &[f64], at: CellPoint) -> f64 {
    let mut dofs = vec![0; space.element().n_dofs()];
    space.cell_dofs(at.position, &mut dofs);
    let shapes = space.element().tabulate(&[at.reference]).values;
    dofs.iter().zip(shapes).map(|(&dof, shape)| u[dof as usize] * shape).sum()
}
