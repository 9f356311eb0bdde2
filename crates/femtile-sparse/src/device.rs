//! Matrices of solves, compiled in this crate once per device.

use femtile_device::{Cpu, Cuda};
use femtile_linalg::vector::Convert;
use femtile_linalg::{LinalgError, LinearOperator};

use crate::choice::{Described, Remembered};
use crate::csr::{Csr, CsrKernels};
use crate::ell_warp::{EllWarp, EllWarpConfig, EllWarpKernels};
use crate::{MatrixFormat, ProductMatrix};

/// A device with sparse matrices in f64: [`Cpu`] and [`Cuda`].
///
/// Conversions such as [`ProductMatrix::new`], and products of a matrix whose type the caller knows, are compiled again in
/// each crate that calls them; these are not.
pub trait SparseDevice:
    CsrKernels<f64> + EllWarpKernels<f64, f64> + EllWarpKernels<f64, f32> + Described + Convert<f64, f32>
{
    /// [`ProductMatrix::new`].
    ///
    /// # Errors
    /// As [`ProductMatrix::new`].
    fn product_matrix(
        matrix: Csr<f64, Self>,
        format: MatrixFormat,
        n_products: usize,
        known: &[Remembered],
    ) -> Result<(ProductMatrix<f64, Self>, String), LinalgError>;

    /// [`ProductMatrix::in_slices`].
    ///
    /// # Errors
    /// As [`ProductMatrix::in_slices`].
    fn in_slices(
        matrix: Csr<f64, Self>,
        config: Option<&EllWarpConfig>,
    ) -> Result<ProductMatrix<f64, Self>, LinalgError>;

    /// Returns slices with their values rounded to 32 bits, for products.
    ///
    /// # Errors
    /// As [`EllWarp::rounded`].
    fn rounded(slices: &EllWarp<f64, Self>) -> Result<Box<dyn LinearOperator<f64, Self>>, LinalgError>;

    /// [`EllWarp::refill`].
    ///
    /// # Errors
    /// As [`EllWarp::refill`].
    fn refill_slices(slices: &mut EllWarp<f64, Self>, rows: &Csr<f64, Self>) -> Result<(), LinalgError>;

    /// Returns a matrix in rows for products.
    fn rows_operator(matrix: &Csr<f64, Self>) -> &dyn LinearOperator<f64, Self>;

    /// Returns a matrix for products.
    fn matrix_operator(matrix: &ProductMatrix<f64, Self>) -> &dyn LinearOperator<f64, Self>;

    /// As [`SparseDevice::matrix_operator`], by value.
    fn into_operator(matrix: ProductMatrix<f64, Self>) -> Box<dyn LinearOperator<f64, Self>>;
}

/// Implements [`SparseDevice`] for a device.
macro_rules! sparse_device {
    ($device:ty) => {
        impl SparseDevice for $device {
            fn product_matrix(
                matrix: Csr<f64, Self>,
                format: MatrixFormat,
                n_products: usize,
                known: &[Remembered],
            ) -> Result<(ProductMatrix<f64, Self>, String), LinalgError> {
                ProductMatrix::new(matrix, format, n_products, known)
            }

            fn in_slices(
                matrix: Csr<f64, Self>,
                config: Option<&EllWarpConfig>,
            ) -> Result<ProductMatrix<f64, Self>, LinalgError> {
                ProductMatrix::in_slices(matrix, config)
            }

            fn rounded(
                slices: &EllWarp<f64, Self>,
            ) -> Result<Box<dyn LinearOperator<f64, Self>>, LinalgError> {
                Ok(Box::new(slices.rounded::<f32>()?))
            }

            fn refill_slices(
                slices: &mut EllWarp<f64, Self>,
                rows: &Csr<f64, Self>,
            ) -> Result<(), LinalgError> {
                slices.refill(rows)
            }

            fn rows_operator(matrix: &Csr<f64, Self>) -> &dyn LinearOperator<f64, Self> {
                matrix
            }

            fn matrix_operator(matrix: &ProductMatrix<f64, Self>) -> &dyn LinearOperator<f64, Self> {
                matrix
            }

            fn into_operator(matrix: ProductMatrix<f64, Self>) -> Box<dyn LinearOperator<f64, Self>> {
                Box::new(matrix)
            }
        }
    };
}

sparse_device!(Cpu);
sparse_device!(Cuda);
