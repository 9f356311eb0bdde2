use femtile_device::Scalar;
use femtile_linalg::vector::VectorKernels;

use super::EllWarpConfig;
use super::csr::CsrKernels;
use super::ell_warp::EllWarpKernels;

/// A storage format of a sparse matrix, with its parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Compressed sparse rows.
    Csr,
    /// ELL-WARP: slices of rows.
    EllWarp(EllWarpConfig),
}

impl Format {
    /// Returns its name with its parameters, as reports show it.
    pub fn name(&self) -> String {
        match self {
            Self::Csr => "CSR".into(),
            Self::EllWarp(config) => config.name(),
        }
    }
}

/// A device with the products of both formats, and of slices with values in f32.
pub trait SparseKernels<T: Scalar>:
    CsrKernels<T> + EllWarpKernels<T, T> + EllWarpKernels<T, f32> + VectorKernels<T>
{
}

impl<T: Scalar, D> SparseKernels<T> for D where
    D: CsrKernels<T> + EllWarpKernels<T, T> + EllWarpKernels<T, f32> + VectorKernels<T>
{
}
