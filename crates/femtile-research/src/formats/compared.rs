use femtile::device::{Buffer, HostDevice, Scalar};
use femtile::linalg::sparse::{Csr, EllWarpConfig, Format, ProductMatrix};
use femtile::linalg::{LinalgError, LinearOperator};

use super::{FormatKernels, Hyb, Merge};

/// A storage format of a sparse matrix: one of solves, or one that those are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparedFormat {
    /// A format of solves.
    Solver(Format),
    /// Merge-based CSR: compressed sparse rows, whose entries are divided evenly.
    Merge,
    /// ELLPACK for the common row length, coordinates for the rest.
    Hyb,
}

impl ComparedFormat {
    /// Returns ELL-WARP with its parameters.
    pub fn ell_warp(config: EllWarpConfig) -> Self {
        Self::Solver(Format::EllWarp(config))
    }
}

/// A sparse matrix in one of the compared formats.
#[derive(Debug)]
pub enum ComparedMatrix<T: Scalar, D: FormatKernels<T>> {
    /// In a format of solves.
    Solver(ProductMatrix<T, D>),
    /// In merge-based CSR.
    Merge(Merge<T, D>),
    /// In ELLPACK and coordinates.
    Hyb(Hyb<T, D>),
}

impl<T: Scalar, D: FormatKernels<T>> ComparedMatrix<T, D> {
    /// Copies the matrix `a` to `device` in a format.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when the format cannot hold the matrix; errors of the device.
    pub fn new(device: &D, a: &Csr<T, impl HostDevice>, format: ComparedFormat) -> Result<Self, LinalgError> {
        Ok(match format {
            ComparedFormat::Solver(format) => Self::Solver(ProductMatrix::from_csr(device, a, format)?),
            ComparedFormat::Merge => Self::Merge(Merge::from_csr(device, a)?),
            ComparedFormat::Hyb => Self::Hyb(Hyb::from_csr(device, a)?),
        })
    }

    /// Returns the number of stored entries.
    pub fn n_stored(&self) -> usize {
        match self {
            Self::Solver(matrix) => matrix.n_stored(),
            Self::Merge(matrix) => matrix.n_nonzeros(),
            Self::Hyb(matrix) => matrix.n_stored(),
        }
    }

    /// Computes $y = A x$.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when a vector does not fit; errors of the device.
    pub fn apply(&self, y: &mut Buffer<T, D>, x: &Buffer<T, D>) -> Result<(), LinalgError> {
        match self {
            Self::Solver(matrix) => matrix.apply(y, x),
            Self::Merge(matrix) => x.device().merge_apply(y, matrix, x),
            Self::Hyb(matrix) => matrix.apply(y, x),
        }
    }
}
