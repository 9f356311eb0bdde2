//! The solution as a file.

use femtile_fem::dofs::TensorSpace;
use femtile_mesh::MeshError;

use crate::{Case, output};

/// Writes `solution.vtu`: the values at the corners, on cells with straight edges.
pub(super) fn write_solution(case: &Case, space: &TensorSpace<'_>, u: &[f64]) -> Result<(), MeshError> {
    output::write_solution(case, space.mesh(), corner_values(space, u))
}

/// The value at each node of the mesh.
fn corner_values(space: &TensorSpace<'_>, u: &[f64]) -> Vec<f64> {
    let mut values = vec![0.0; space.mesh().n_nodes()];
    for position in 0..space.n_cells() {
        let firsts = space.firsts(position);
        for (bits, &node) in space.corners(position).iter().enumerate() {
            // Corner entities have the digits 0 and 2 in base three.
            let entity: usize = (0..3).map(|axis| 2 * (bits >> axis & 1) * 3usize.pow(axis)).sum();
            values[node as usize] = u[firsts[entity] as usize];
        }
    }
    values
}
