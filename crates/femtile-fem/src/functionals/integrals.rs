use std::convert::Infallible;

use femtile_mesh::Mesh;

use super::{check_length, corners, sum_blocks};
use crate::FemError;

/// Returns the area or volume of a mesh of simplices.
pub fn measure(mesh: &Mesh) -> f64 {
    sum_cells(mesh, |cell| mesh.signed_measure(cell as usize).abs())
}

/// Returns $\int_\Omega u$, exactly.
///
/// # Errors
/// [`FemError::Length`] unless `u` has one entry per node.
pub fn integral(mesh: &Mesh, u: &[f64]) -> Result<f64, FemError> {
    check_length(mesh, u)?;
    Ok(sum_cells(mesh, |cell| {
        let (_, values, n) = corners(mesh, u, cell);
        mesh.signed_measure(cell as usize).abs() * values.iter().sum::<f64>() / n as f64
    }))
}

/// Returns $\int_\Omega u\,/\,|\Omega|$, exactly.
///
/// # Errors
/// [`FemError::Length`] unless `u` has one entry per node.
pub fn mean(mesh: &Mesh, u: &[f64]) -> Result<f64, FemError> {
    Ok(integral(mesh, u)? / measure(mesh))
}

/// Returns $\sqrt{\int_\Omega u^2}$, exactly.
///
/// On a simplex with corner values $u_a$ the mean of $u^2$ is $(\sum u_a^2 + (\sum u_a)^2) / ((d+1)(d+2))$.
///
/// # Errors
/// [`FemError::Length`] unless `u` has one entry per node.
pub fn l2_norm(mesh: &Mesh, u: &[f64]) -> Result<f64, FemError> {
    check_length(mesh, u)?;
    let square = sum_cells(mesh, |cell| {
        let (_, values, n) = corners(mesh, u, cell);
        let (sum, squares) = (values.iter().sum::<f64>(), values.iter().map(|u| u * u).sum::<f64>());
        mesh.signed_measure(cell as usize).abs() * (squares + sum * sum) / (n * (n + 1)) as f64
    });
    Ok(square.sqrt())
}

fn sum_cells(mesh: &Mesh, term: impl Fn(u32) -> f64 + Sync) -> f64 {
    let sum: Result<f64, Infallible> = sum_blocks(mesh, |cells| Ok(cells.map(&term).sum()));
    sum.unwrap_or_else(|never| match never {})
}
