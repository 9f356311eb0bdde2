//! What goes where on a device whose own memory is too small for all.
//!
//! A cycle reads vectors in any order, the matrices of its levels in order and several times, the matrix that it is
//! meant for once. So vectors stay, and of matrices those leave first that are read least.

use femtile_device::{Device, MemorySpace, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::krylov::cg::vector_bytes;
use femtile_linalg::sparse::csr::Csr;

use crate::kernels::AmgKernels;
use crate::level::Level;

/// What the set-up takes on a device beside the copy of the matrix, over that.
const BESIDE: f64 = 2.0;
/// Vectors of a level.
const N_OF_LEVEL: usize = 5;

/// Bytes of all vectors that come after the set-up, those of coarser levels at most a quarter of those of the first.
pub(crate) fn vectors<T: Scalar, H: Scalar>(n_rows: usize) -> usize {
    vector_bytes::<T>(n_rows) + N_OF_LEVEL * n_rows * size_of::<H>() * 5 / 4
}

/// Moves the given matrix away where its copy in the precision of the levels and the set-up would not find room beside it.
pub(crate) fn make_room_for_levels<T: Scalar, H: Scalar, D: Device>(
    a: &mut Csr<T, D>,
) -> Result<(), LinalgError> {
    leave_where_tight(a, (1.0 + BESIDE) * copied::<H>(a.n_nonzeros()))
}

/// Moves that copy away where the set-up would not find room beside it.
pub(crate) fn make_room_for_set_up<H: Scalar, D: Device>(a: &mut Csr<H, D>) -> Result<(), LinalgError> {
    leave_where_tight(a, BESIDE * copied::<H>(a.n_nonzeros()))
}

/// Bytes of a matrix in the precision of the levels.
fn copied<H: Scalar>(n_nonzeros: usize) -> f64 {
    (n_nonzeros * (4 + size_of::<H>())) as f64
}

fn leave_where_tight<T: Scalar, D: Device>(a: &mut Csr<T, D>, needed: f64) -> Result<(), LinalgError> {
    if a.values().device().available_bytes().is_some_and(|available| (available as f64) < needed) {
        a.move_to(MemorySpace::Host)?;
    }
    Ok(())
}

/// Brings matrices back as far as there is room, from the coarsest level on: those that a level is smoothed with are read
/// several times a cycle, transfers once.
pub(crate) fn settle<H: Scalar, D: AmgKernels<H>>(levels: &mut [Level<H, D>]) -> Result<(), LinalgError> {
    for level in levels.iter_mut().rev() {
        if !level.a.move_to(MemorySpace::Device)? {
            level.restriction.move_to(MemorySpace::Host)?;
            level.prolongation.move_to(MemorySpace::Host)?;
            level.a.move_to(MemorySpace::Device)?;
        }
    }
    for level in levels.iter_mut().rev() {
        level.restriction.move_to(MemorySpace::Device)?;
        level.prolongation.move_to(MemorySpace::Device)?;
    }
    Ok(())
}
