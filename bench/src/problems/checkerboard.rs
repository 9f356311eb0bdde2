//! −∇·(σ∇u) = 1 on the box, u = 0 on one face, σ = 1 and 1,000 in a checkerboard of 8³ blocks.

use femtile::fem::{
    AssembledSystem, AssemblyKernels, BoundaryCondition, Coefficient, Condition, Form, assemble,
};
use femtile::mesh::Mesh;
use femtile::mesh::check::boundary_facets;

use super::by_cell;
use crate::BenchError;

/// Blocks along a side of the box, and how much σ differs from one to the next.
const BLOCKS: f64 = 8.0;
const JUMP: f64 = 1000.0;
/// The side of the box.
const SIDE: f64 = 4.0;

/// The conductivity of a mesh of the box, 1 in the block at the origin.
pub fn conductivity(mesh: &Mesh) -> Coefficient {
    by_cell(mesh, |centroid| {
        let parity: f64 = centroid.iter().map(|x| (x * BLOCKS / SIDE).floor()).sum();
        if parity % 2.0 == 0.0 { 1.0 } else { JUMP }
    })
}

/// Matrix and right side on a mesh of the box, rows and columns of the face x = 0 eliminated.
///
/// # Errors
/// [`BenchError::Fem`] when the device has not enough memory.
pub fn system<D: AssemblyKernels<f64>>(
    device: &D,
    mesh: &Mesh,
) -> Result<AssembledSystem<f64, D>, BenchError> {
    let boundary = boundary_facets(mesh);
    let on_face = |facet: &u32| {
        boundary.facet(*facet as usize).iter().all(|&node| mesh.points[node as usize][0] == 0.0)
    };
    let facets = (0..boundary.len() as u32).filter(on_face).collect();
    let conditions = [BoundaryCondition { facets, condition: Condition::Dirichlet(0.0.into()) }];
    let (lambda, source) = (Coefficient::Constant(0.0), Coefficient::Constant(1.0));
    let sigma = &conductivity(mesh);
    let form =
        Form { mesh, boundary: &boundary, sigma, lambda: &lambda, source: &source, conditions: &conditions };
    Ok(assemble(device, &form, &|_| ())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problems::kuhn_box;
    use femtile::device::Reference;

    #[test]
    fn blocks_alternate_and_one_face_is_held() -> Result<(), BenchError> {
        let mesh = kuhn_box::mesh(17)?;
        let Coefficient::CellField(field) = conductivity(&mesh) else { panic!("not by cell") };
        let high = field.values.iter().filter(|value| **value == JUMP).count();
        assert_eq!(2 * high, mesh.n_cells());
        let AssembledSystem { matrix, rhs, constraints, .. } = system(&Reference, &mesh)?;
        assert_eq!(constraints.len(), 17 * 17);
        for row in 0..matrix.n_rows() {
            let is_held = row % 17 == 0;
            assert_eq!(rhs.as_slice()[row] == 0.0, is_held, "{row}");
            assert_eq!(matrix.row(row).all(|(column, value)| value == 0.0 || column == row), is_held);
        }
        Ok(())
    }
}
