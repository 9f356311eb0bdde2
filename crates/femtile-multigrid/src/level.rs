use femtile_device::{Buffer, Scalar};

use crate::MultigridError;
use crate::grid::BoxGrid;
use crate::kernels::BoxKernels;
use crate::smoother::Smoother;

/// A level above the coarsest.
#[derive(Debug, Clone)]
pub(crate) struct Level<T: Scalar, D: BoxKernels<T>> {
    pub grid: BoxGrid,
    pub smoother: D::BoxSmoother,
    /// The transfer to and from the next coarser level.
    pub transfer: D::BoxTransfer,
}

impl<T: Scalar, D: BoxKernels<T>> Level<T, D> {
    pub fn new(
        device: &D,
        coarse: &BoxGrid,
        grid: &BoxGrid,
        smoother: Smoother,
    ) -> Result<Self, MultigridError> {
        Ok(Self {
            smoother: device.box_smoother(grid, smoother)?,
            transfer: device.box_transfer(coarse, grid)?,
            grid: grid.clone(),
        })
    }
}

/// Solution and right-hand side of a level.
#[derive(Debug)]
pub(crate) struct Vectors<T: Scalar, D: BoxKernels<T>> {
    pub x: Buffer<T, D>,
    pub b: Buffer<T, D>,
}

impl<T: Scalar, D: BoxKernels<T>> Vectors<T, D> {
    pub fn zeros(device: &D, grid: &BoxGrid) -> Result<Self, MultigridError> {
        let zeros = || Buffer::zeros(device, grid.n_nodes());
        Ok(Self { x: zeros()?, b: zeros()? })
    }
}

/// Workspace of V-cycles with a zero initial guess.
#[derive(Debug)]
pub(crate) struct Workspace<T: Scalar, D: BoxKernels<T>> {
    /// Vectors of all levels, the coarsest first.
    pub vectors: Vec<Vectors<T, D>>,
    /// The recorded cycle on these vectors.
    pub recording: D::Recording,
}
