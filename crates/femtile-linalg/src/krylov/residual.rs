//! Sizes, residual, norm and dot product, for all Krylov methods.

use femtile_device::{Buffer, Device, Scalar};

use crate::comm::Communicator;
use crate::vector::VectorKernels;
use crate::{LinalgError, LinearOperator, error::need};

/// Checks that the parts of a system have the same size.
pub(super) fn fits<T: Scalar, D: VectorKernels<T>>(
    a: &dyn LinearOperator<T, D>,
    x: &Buffer<T, D>,
    b: &Buffer<T, D>,
) -> Result<(), LinalgError> {
    need("b", a.n_rows(), b.len())?;
    need("x", a.n_rows(), x.len())?;
    need("a", a.n_rows(), a.n_cols())
}

/// r = b − A x.
pub(super) fn residual<T: Scalar, D: VectorKernels<T>>(
    r: &mut Buffer<T, D>,
    a: &dyn LinearOperator<T, D>,
    x: &Buffer<T, D>,
    b: &Buffer<T, D>,
) -> Result<(), LinalgError> {
    a.apply(r, x)?;
    b.device().axpby(r, T::ONE, b, -T::ONE)
}

/// ‖x‖₂ over all ranks.
pub(super) fn norm<T: Scalar, D: VectorKernels<T>, C: Communicator>(
    x: &Buffer<T, D>,
    comm: &C,
) -> Result<f64, LinalgError> {
    Ok(dot(x, x, comm)?.sqrt())
}

/// $x^\mathsf{T} y$ over all ranks.
pub(super) fn dot<T: Scalar, D: VectorKernels<T>, C: Communicator>(
    x: &Buffer<T, D>,
    y: &Buffer<T, D>,
    comm: &C,
) -> Result<f64, LinalgError> {
    let device = x.device();
    Ok(over_ranks(device, &[device.dot(x, y)?], comm)?[0])
}

/// Sums over all ranks, in one reduction.
pub(crate) fn over_ranks<D: Device, C: Communicator>(
    device: &D,
    sums: &[f64],
    comm: &C,
) -> Result<Vec<f64>, LinalgError> {
    if comm.n_ranks() == 1 {
        return Ok(sums.to_vec());
    }
    let mut sums = Buffer::from_host(device, sums)?;
    comm.sum(&mut sums)?;
    Ok(sums.to_host()?)
}

/// As [`over_ranks`], while `work` is done.
pub(super) fn over_ranks_during<D: Device, C: Communicator>(
    device: &D,
    sums: &[f64],
    comm: &C,
    work: &mut dyn FnMut() -> Result<(), LinalgError>,
) -> Result<Vec<f64>, LinalgError> {
    if comm.n_ranks() == 1 {
        work()?;
        return Ok(sums.to_vec());
    }
    let mut sums = Buffer::from_host(device, sums)?;
    comm.sum_during(&mut sums, work)?;
    Ok(sums.to_host()?)
}
