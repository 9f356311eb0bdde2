//! Placement of arrays on a device whose own memory is too small for all of them.
//!
//! A cycle reads vectors at random, the matrices of its levels in order and several times, the matrix of the solve once.
//! Vectors therefore stay on the device, and the matrices that are read least move to the host first.

use femtile_device::{Device, MemorySpace, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::krylov::cg::vector_bytes;
use femtile_sparse::csr::Csr;

use crate::kernels::AmgKernels;
use crate::level::Level;

/// Device memory of the setup besides the copy of the matrix, relative to that copy.
const BESIDE: f64 = 2.0;
/// Number of vectors of a level.
const N_OF_LEVEL: usize = 5;

/// Returns the bytes of all vectors that are allocated after the setup; coarser levels have at most a quarter of the first.
pub(crate) fn vectors<T: Scalar, H: Scalar>(n_rows: usize) -> usize {
    vector_bytes::<T>(n_rows) + N_OF_LEVEL * n_rows * size_of::<H>() * 5 / 4
}

/// Moves the given matrix to the host if its copy in the precision of the levels and the setup would not fit beside it.
pub(crate) fn offload_for_levels<T: Scalar, H: Scalar, D: Device>(
    a: &mut Csr<T, D>,
) -> Result<(), LinalgError> {
    offload_if_short(a, (1.0 + BESIDE) * copied::<H>(a.n_nonzeros()))
}

/// Moves that copy to the host if the setup would not fit beside it.
pub(crate) fn offload_for_setup<H: Scalar, D: Device>(a: &mut Csr<H, D>) -> Result<(), LinalgError> {
    offload_if_short(a, BESIDE * copied::<H>(a.n_nonzeros()))
}

/// Returns the bytes of a matrix in the precision of the levels.
fn copied<H: Scalar>(n_nonzeros: usize) -> f64 {
    (n_nonzeros * (4 + size_of::<H>())) as f64
}

fn offload_if_short<T: Scalar, D: Device>(a: &mut Csr<T, D>, needed: f64) -> Result<(), LinalgError> {
    if a.values().device().available_bytes().is_some_and(|available| (available as f64) < needed) {
        a.move_to(MemorySpace::Host)?;
    }
    Ok(())
}

/// Moves matrices back to the device as far as they fit, from the coarsest level on: level matrices first, which are read
/// several times a cycle, then transfers, which are read once.
pub(crate) fn return_levels<H: Scalar, D: AmgKernels<H>>(
    levels: &mut [Level<H, D>],
) -> Result<(), LinalgError> {
    for level in levels.iter_mut().rev() {
        if !level.a.own.move_to(MemorySpace::Device)? {
            level.transfer.restriction.move_to(MemorySpace::Host)?;
            level.transfer.prolongation.move_to(MemorySpace::Host)?;
            level.a.own.move_to(MemorySpace::Device)?;
        }
    }
    for level in levels.iter_mut().rev() {
        level.transfer.restriction.move_to(MemorySpace::Device)?;
        level.transfer.prolongation.move_to(MemorySpace::Device)?;
    }
    Ok(())
}
