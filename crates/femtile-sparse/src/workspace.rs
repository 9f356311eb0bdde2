use femtile_device::{Device, MemorySpace, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::krylov::cg::vector_bytes;

use crate::csr::Csr;

/// Reserves device memory for the vectors of a solve with the matrix `a`, moving `a` to host memory where both do not fit.
///
/// Vectors are read in any order and need the device's own memory; the matrix is read once an iteration and in order. As
/// much of it as fits beside the vectors returns to the device.
///
/// # Errors
/// Errors of the device.
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
