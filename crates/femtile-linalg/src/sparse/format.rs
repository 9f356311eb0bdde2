use femtile_device::{Buffer, Device, HostDevice, Scalar};

use super::choice::{Described, estimates};
use super::coo::CooKernels;
use super::csr::CsrKernels;
use super::ell::EllKernels;
use super::ell_warp::EllWarpKernels;
use super::jds::JdsKernels;
use super::merge::MergeKernels;
use super::{Coo, Csr, Ell, EllConfig, EllWarp, EllWarpConfig, HookKernels, Hyb, Jds, Merge, TileKernels};
use crate::hooks::Hook;
use crate::vector::VectorKernels;
use crate::{LinalgError, LinearOperator};

/// A way of storing a sparse matrix, with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Compressed sparse rows.
    Csr,
    /// Coordinates.
    Coo,
    /// Compressed sparse rows, with the entries shared out evenly.
    Merge,
    /// ELLPACK.
    Ell(EllConfig),
    /// Padded jagged diagonals.
    Jds,
    /// ELLPACK for what most rows have, coordinates for the rest.
    Hyb,
    /// Rows in slices.
    EllWarp(EllWarpConfig),
}

impl Format {
    /// Its name with its parameters, as reports show it.
    pub fn name(&self) -> String {
        match self {
            Self::Csr => "CSR".into(),
            Self::Coo => "COO".into(),
            Self::Merge => "merge".into(),
            Self::Ell(EllConfig { lengths: false, .. }) => "ELL".into(),
            Self::Ell(EllConfig { threads_per_row, .. }) => format!("ELLR-{threads_per_row}"),
            Self::Jds => "pJDS".into(),
            Self::Hyb => "HYB".into(),
            Self::EllWarp(config) => config.name(),
        }
    }
}

/// A device with the products of all formats.
pub trait SparseKernels<T: Scalar>:
    CsrKernels<T>
    + CooKernels<T>
    + MergeKernels<T>
    + EllKernels<T>
    + JdsKernels<T>
    + EllWarpKernels<T, T>
    + EllWarpKernels<T, f32>
    + TileKernels
    + HookKernels<T>
    + VectorKernels<T>
{
}

impl<T: Scalar, D> SparseKernels<T> for D where
    D: CsrKernels<T>
        + CooKernels<T>
        + MergeKernels<T>
        + EllKernels<T>
        + JdsKernels<T>
        + EllWarpKernels<T, T>
        + EllWarpKernels<T, f32>
        + TileKernels
        + HookKernels<T>
        + VectorKernels<T>
{
}

/// A sparse matrix in a format that was chosen at run time.
pub struct SparseMatrix<T: Scalar, D: Device> {
    format: Format,
    n_nonzeros: usize,
    n_stored: usize,
    product_bytes: usize,
    operator: Box<dyn LinearOperator<T, D>>,
}

impl<T: Scalar, D: Device> std::fmt::Debug for SparseMatrix<T, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} with {} non-zeros", self.format.name(), self.n_nonzeros)
    }
}

impl<T: Scalar, D: SparseKernels<T>> SparseMatrix<T, D> {
    /// The matrix `a` in the format that the cost model expects to be fastest on a device.
    ///
    /// # Errors
    /// What the device reports.
    pub fn auto<H: HostDevice>(device: &D, a: &Csr<T, H>) -> Result<Self, LinalgError>
    where
        D: Described,
    {
        let best = estimates(a, &device.machine()).first().map_or(Format::Csr, |estimate| estimate.format);
        Self::new(device, a, best)
    }

    /// The matrix `a` in a format, on a device.
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when the format cannot hold the matrix; what the device reports.
    pub fn new<H: HostDevice>(device: &D, a: &Csr<T, H>, format: Format) -> Result<Self, LinalgError> {
        let n_nonzeros = a.n_nonzeros();
        let made = |n_stored, product_bytes, operator| Self {
            format,
            n_nonzeros,
            n_stored,
            product_bytes,
            operator,
        };
        Ok(match format {
            Format::Csr => {
                let matrix = a.copy_to(device)?;
                made(n_nonzeros, matrix.product_bytes(), Box::new(matrix))
            }
            Format::Coo => {
                let matrix = Coo::from_csr(device, a)?;
                made(n_nonzeros, matrix.product_bytes(), Box::new(matrix))
            }
            Format::Merge => {
                let matrix = Merge::from_csr(device, a)?;
                made(n_nonzeros, matrix.product_bytes(), Box::new(matrix))
            }
            Format::Ell(config) => {
                let matrix = Ell::from_csr(device, a, config)?;
                made(matrix.n_stored(), matrix.product_bytes(), Box::new(matrix))
            }
            Format::Jds => {
                let matrix = Jds::from_csr(device, a)?;
                made(matrix.n_stored(), matrix.product_bytes(), Box::new(matrix))
            }
            Format::Hyb => {
                let matrix = Hyb::from_csr(device, a)?;
                made(matrix.parts().iter().sum(), matrix.product_bytes(), Box::new(matrix))
            }
            Format::EllWarp(config) => {
                let matrix = EllWarp::<T, D>::from_csr(device, a, &config)?;
                made(matrix.n_stored(), matrix.product_bytes(), Box::new(matrix))
            }
        })
    }
}

impl<T: Scalar, D: Device> SparseMatrix<T, D> {
    /// The format it is in.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Number of entries of the matrix.
    pub fn n_nonzeros(&self) -> usize {
        self.n_nonzeros
    }

    /// Stored entries over entries of the matrix; 1 where there are none.
    pub fn padding(&self) -> f64 {
        if self.n_nonzeros == 0 { 1.0 } else { self.n_stored as f64 / self.n_nonzeros as f64 }
    }

    /// Bytes that a product must move.
    pub fn product_bytes(&self) -> usize {
        self.product_bytes
    }
}

impl<T: Scalar, D: Device> LinearOperator<T, D> for SparseMatrix<T, D> {
    fn n_rows(&self) -> usize {
        self.operator.n_rows()
    }

    fn n_cols(&self) -> usize {
        self.operator.n_cols()
    }

    fn device(&self) -> &D {
        self.operator.device()
    }

    fn apply_with(
        &self,
        y: &mut Buffer<T, D>,
        x: &Buffer<T, D>,
        hook: &dyn Hook<T>,
    ) -> Result<(), LinalgError> {
        self.operator.apply_with(y, x, hook)
    }
}
