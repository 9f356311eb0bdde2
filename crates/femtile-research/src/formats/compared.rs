use femtile::device::{Buffer, HostDevice, Scalar};
use femtile::linalg::sparse::choice::Described;
use femtile::linalg::sparse::{Csr, EllWarpConfig, Format, ProductMatrix, SparseKernels};
use femtile::linalg::{LinalgError, LinearOperator};

use super::coo::CooKernels;
use super::ell::EllKernels;
use super::jds::JdsKernels;
use super::merge::MergeKernels;
use super::{Coo, Ell, EllConfig, Hyb, Jds, Merge};

/// A storage format of a sparse matrix: one of solves, or one that those are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComparedFormat {
    /// A format of solves.
    Solver(Format),
    /// Coordinates.
    Coo,
    /// Merge-based CSR: compressed sparse rows, whose entries are divided evenly.
    Merge,
    /// ELLPACK, ELLPACK-R or ELLR-T.
    Ell(EllConfig),
    /// Padded jagged diagonals.
    Jds,
    /// ELLPACK for the common row length, coordinates for the rest.
    Hyb,
}

impl ComparedFormat {
    /// Returns ELL-WARP with its parameters.
    pub fn ell_warp(config: EllWarpConfig) -> Self {
        Self::Solver(Format::EllWarp(config))
    }
}

/// A device with the products of all formats.
pub trait FormatKernels<T: Scalar>:
    SparseKernels<T> + Described + CooKernels<T> + MergeKernels<T> + EllKernels<T> + JdsKernels<T>
{
}

impl<T: Scalar, D> FormatKernels<T> for D where
    D: SparseKernels<T> + Described + CooKernels<T> + MergeKernels<T> + EllKernels<T> + JdsKernels<T>
{
}

/// A sparse matrix in one of the compared formats.
pub struct ComparedMatrix<T: Scalar, D: FormatKernels<T>> {
    operator: Box<dyn LinearOperator<T, D>>,
    n_stored: usize,
}

impl<T: Scalar, D: FormatKernels<T>> std::fmt::Debug for ComparedMatrix<T, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} × {}, {} stored entries", self.operator.n_rows(), self.operator.n_cols(), self.n_stored)
    }
}

impl<T: Scalar, D: FormatKernels<T>> ComparedMatrix<T, D> {
    /// Copies the matrix `a` to `device` in a format.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when the format cannot hold the matrix; errors of the device.
    pub fn new(device: &D, a: &Csr<T, impl HostDevice>, format: ComparedFormat) -> Result<Self, LinalgError> {
        let (n_stored, operator): (_, Box<dyn LinearOperator<T, D>>) = match format {
            ComparedFormat::Solver(format) => {
                let matrix = ProductMatrix::from_csr(device, a, format)?;
                (matrix.n_stored(), Box::new(matrix))
            }
            ComparedFormat::Coo => (a.n_nonzeros(), Box::new(Coo::from_csr(device, a)?)),
            ComparedFormat::Merge => (a.n_nonzeros(), Box::new(Merge::from_csr(device, a)?)),
            ComparedFormat::Ell(config) => {
                let matrix = Ell::from_csr(device, a, config)?;
                (matrix.n_stored(), Box::new(matrix))
            }
            ComparedFormat::Jds => {
                let matrix = Jds::from_csr(device, a)?;
                (matrix.n_stored(), Box::new(matrix))
            }
            ComparedFormat::Hyb => {
                let matrix = Hyb::from_csr(device, a)?;
                (matrix.parts().iter().sum(), Box::new(matrix))
            }
        };
        Ok(Self { operator, n_stored })
    }

    /// Returns the number of stored entries.
    pub fn n_stored(&self) -> usize {
        self.n_stored
    }

    /// Computes $y = A x$.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when a vector does not fit; errors of the device.
    pub fn apply(&self, y: &mut Buffer<T, D>, x: &Buffer<T, D>) -> Result<(), LinalgError> {
        self.operator.apply(y, x)
    }
}
