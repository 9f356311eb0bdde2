use std::sync::{Mutex, MutexGuard, PoisonError};

use femtile::device::{Buffer, Scalar};
use femtile::linalg::LinalgError;

use super::FormatKernels;

/// Room for the sums that tiles of entries leave open, kept with a matrix so that a product allocates nothing.
///
/// One product at a time uses it; those on a GPU happen in the order in which they are asked for.
#[derive(Debug)]
pub(super) struct Carries<T: Scalar, D: FormatKernels<T>>(Mutex<OpenSums<T, D>>);

/// Sums that are open, and the rows that they belong to, in ascending order.
#[derive(Debug)]
pub(super) struct OpenSums<T: Scalar, D: FormatKernels<T>> {
    pub(super) rows: Buffer<u32, D>,
    pub(super) sums: Buffer<T, D>,
}

impl<T: Scalar, D: FormatKernels<T>> Carries<T, D> {
    /// Room for a matrix of `n_entries` entries.
    pub(super) fn new(device: &D, n_entries: usize) -> Result<Self, LinalgError> {
        let n = device.tile_carries(n_entries);
        let (rows, sums) = (Buffer::zeros(device, n)?, Buffer::zeros(device, n)?);
        Ok(Self(Mutex::new(OpenSums { rows, sums })))
    }

    /// The room, once no other product uses it.
    pub(super) fn lock(&self) -> MutexGuard<'_, OpenSums<T, D>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
