//! $-\Delta u + u = 1$ on a cube of side 4 with natural sides, Kuhn tetrahedra, linear elements.

use femtile::device::{Buffer, Device, DeviceError, Scalar};
use femtile::fem::{AssembledSystem, AssemblyKernels, Coefficient, Form, assemble};
use femtile::linalg::sparse::Csr;
use femtile::mesh::Mesh;
use femtile::mesh::check::BoundaryFacets;
use femtile::mesh::generate::{BoxConfig, BoxSplit, box_mesh};

use crate::BenchError;

/// The cube with `nodes` nodes a side.
///
/// # Errors
/// [`BenchError::Mesh`] when there are fewer than two nodes or too many to number.
pub fn mesh(nodes: usize) -> Result<Mesh, BenchError> {
    let cells = [nodes.saturating_sub(1); 3];
    Ok(box_mesh(&BoxConfig { lower: [0.0; 3], upper: [4.0; 3], cells, split: BoxSplit::Kuhn })?)
}

/// Matrix and right side of the problem on that mesh.
///
/// # Errors
/// [`BenchError::Fem`] when the device has not enough memory.
pub fn system<T: Scalar, D: AssemblyKernels<T>>(
    device: &D,
    mesh: &Mesh,
) -> Result<AssembledSystem<T, D>, BenchError> {
    let (one, boundary) = (Coefficient::Constant(1.0), BoundaryFacets::default());
    let form = Form { mesh, boundary: &boundary, sigma: &one, lambda: &one, source: &one, conditions: &[] };
    Ok(assemble(device, &form, &|_| ())?)
}

/// The matrix with `nodes` nodes a side: nodes³ rows, 15 entries in each row inside.
///
/// # Errors
/// Those of [`mesh`] and [`system`].
pub fn matrix<T: Scalar, D: AssemblyKernels<T>>(device: &D, nodes: usize) -> Result<Csr<T, D>, BenchError> {
    Ok(system(device, &mesh(nodes)?)?.matrix)
}

/// The right side of the solver benchmarks: every entry one.
///
/// # Errors
/// When the device has not enough memory.
pub fn ones<T: Scalar, D: Device>(device: &D, nodes: usize) -> Result<Buffer<T, D>, DeviceError> {
    Buffer::from_vec(device, vec![T::ONE; nodes * nodes * nodes])
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile::device::Reference;

    #[test]
    fn entries_add_up_to_the_volume_and_inner_rows_have_fifteen() -> Result<(), BenchError> {
        let a = matrix::<f64, _>(&Reference, 5)?;
        let total: f64 = a.values().as_slice().iter().sum();
        assert!((total - 64.0).abs() < 1e-12 * 64.0);
        assert_eq!((a.n_rows(), a.row(2 + 5 * (2 + 5 * 2)).count()), (125, 15));
        Ok(())
    }
}
