use femtile_device::{Device, MemorySpace, Scalar};

use crate::LinalgError;
use crate::sparse::csr::Csr;

/// Vectors of a solve besides the right side: x, r, z, p and q.
const N_VECTORS: usize = 5;

/// Bytes of the vectors of a solve with n unknowns, besides the right side.
pub fn vector_bytes<T: Scalar>(n: usize) -> usize {
    N_VECTORS * n * size_of::<T>()
}

/// On a device whose own memory may be too small, makes room for the vectors of a solve, which are read in any order: the
/// matrix, which is read once an iteration and in order, stays there or comes back there as far as it fits beside them.
///
/// # Errors
/// What the device reports.
pub fn reserve_workspace<T: Scalar, D: Device>(a: &mut Csr<T, D>) -> Result<(), LinalgError> {
    let device = a.values().device().clone();
    let needed = vector_bytes::<T>(a.n_rows());
    let Some(available) = device.available_bytes() else { return Ok(()) };
    if available < needed {
        a.move_to(MemorySpace::Host)?;
    }
    device.with_reserved_bytes(needed, || a.move_to(MemorySpace::Device))?;
    Ok(())
}
