//! The problem of [`super::kuhn_box`] on a box whose rows are neither equally long nor in order.
//!
//! A coarse box is bent at random and refined: the diagonals of refinement then differ from cell to cell, and nodes
//! are numbered by the level that made them.

use femtile::device::{Device, Scalar};
use femtile::fem::AssemblyKernels;
use femtile::linalg::sparse::Csr;
use femtile::mesh::Mesh;
use femtile::mesh::refine::uniform;

use super::kuhn_box;
use crate::BenchError;

/// Largest displacement of a coarse node along each axis, in edges of the coarse box.
const BEND: f64 = 0.25;

/// The box with `coarse` nodes a side, refined `times` times: $((coarse − 1) 2^{times} + 1)^3$ nodes.
///
/// # Errors
/// [`BenchError::Mesh`] when there are fewer than two nodes or too many to number.
pub fn mesh(coarse: usize, times: usize) -> Result<Mesh, BenchError> {
    let mut mesh = kuhn_box::mesh(coarse)?;
    let edge = 4.0 / (coarse - 1) as f64;
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for point in &mut mesh.points {
        for x in point {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let unit = (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0;
            // The sides of the box stay flat.
            if *x > 0.5 * edge && *x < 4.0 - 0.5 * edge {
                *x += BEND * edge * unit;
            }
        }
    }
    (0..times).try_fold(mesh, |mesh, _| Ok(uniform(&mesh)?))
}

/// Its matrix.
///
/// # Errors
/// Those of [`mesh`], and when the device has not enough memory.
pub fn matrix<T: Scalar, D: AssemblyKernels<T> + Device>(
    device: &D,
    coarse: usize,
    times: usize,
) -> Result<Csr<T, D>, BenchError> {
    Ok(kuhn_box::system(device, &mesh(coarse, times)?)?.matrix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile::device::Reference;

    #[test]
    fn it_has_the_nodes_of_the_box_and_rows_of_many_lengths() -> Result<(), BenchError> {
        let a = matrix::<f64, _>(&Reference, 4, 2)?;
        assert_eq!(a.n_rows(), 13 * 13 * 13);
        let lengths = a.row_lengths();
        let (least, most) = (lengths.iter().min(), lengths.iter().max());
        assert!(least <= Some(&8) && most >= Some(&21), "{least:?} {most:?}");
        Ok(())
    }
}
