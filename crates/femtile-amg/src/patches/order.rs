//! Orders of rows in which patches are contiguous.

use std::sync::Arc;

use femtile_device::{Buffer, Device, Scalar};
use femtile_linalg::LinalgError;
use femtile_sparse::csr::Csr;

use super::PatchSmoother;
use crate::setup::rows::inverse;

/// A permutation of the rows of a level.
#[derive(Debug)]
pub(crate) struct RowOrder<D: Device> {
    /// The row at each place.
    pub rows: Buffer<u32, D>,
    /// The place of each row.
    pub places: Buffer<u32, D>,
}

impl<D: Device> RowOrder<D> {
    /// Copies an order to a device.
    pub fn new(device: &D, rows: &[u32]) -> Result<Self, LinalgError> {
        let places = Buffer::from_vec(device, inverse(rows))?;
        Ok(Self { rows: Buffer::from_host(device, rows)?, places })
    }
}

/// An order in which patches are contiguous, and aggregates within them.
#[derive(Debug, Clone)]
pub(crate) struct PatchOrder<D: Device> {
    pub order: Arc<RowOrder<D>>,
    /// The first place of each patch, and the end.
    pub starts: Arc<[u32]>,
}

/// A level in the order of its patches, with its smoother.
#[derive(Debug)]
pub struct PatchedLevel<H: Scalar, D: Device> {
    /// The matrix.
    pub a: Csr<H, D>,
    /// The smoother.
    pub smoother: PatchSmoother<H, D>,
}
