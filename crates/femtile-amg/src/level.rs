//! A level of a hierarchy.

use femtile_device::{Device, Scalar};
use femtile_linalg::LinalgError;
use femtile_sparse::csr::Csr;
use femtile_sparse::{MatrixFormat, ProductMatrix};

use crate::AmgConfig;
use crate::kernels::AmgKernels;
use crate::relaxation::Relaxation;

/// Cycles of a solve that the choice of a matrix format assumes.
pub(crate) const CYCLES: usize = 10;

/// A level that is smoothed, with the transfers to and from the next one.
#[derive(Debug)]
pub(crate) struct Level<H: Scalar, D: Device> {
    pub a: ProductMatrix<H, D>,
    pub relaxation: Relaxation<H, D>,
    pub prolongation: Csr<H, D>,
    pub restriction: Csr<H, D>,
}

impl<H: Scalar, D: AmgKernels<H>> Level<H, D> {
    /// Converts the matrix to the format of the settings if the smoother is a polynomial.
    ///
    /// # Cost
    /// As [`ProductMatrix::new`].
    pub fn in_format(self, config: &AmgConfig) -> Result<Self, LinalgError> {
        let ProductMatrix::Rows(a) = self.a else { return Ok(self) };
        let n_products = CYCLES * config.smoother.n_products();
        let format = if n_products > 0 { config.format } else { MatrixFormat::Csr };
        Ok(Self { a: ProductMatrix::new(a, format, n_products, &[])?.0, ..self })
    }
}

/// The coarsest level.
#[derive(Debug)]
pub(crate) enum Coarsest<H: Scalar, D: Device> {
    /// The inverse of its matrix.
    Direct(Csr<H, D>),
    /// A matrix too large for an inverse, which is smoothed only.
    Smoothed { a: Box<ProductMatrix<H, D>>, relaxation: Relaxation<H, D> },
}

/// Sizes of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LevelShape {
    /// Rows of its matrix.
    pub n_rows: usize,
    /// Non-zeros of its matrix.
    pub n_nonzeros: usize,
    /// Aggregates of its nodes, 0 on the coarsest level. They are the nodes of the next level, which has a further row for
    /// each mode of a sliver.
    pub n_aggregates: usize,
    /// Patches of its rows; 0 without patch smoothers.
    pub n_patches: usize,
    /// Non-zeros of the prolongator from the next level.
    pub n_prolongator: usize,
}
