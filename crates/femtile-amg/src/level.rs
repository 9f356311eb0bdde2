//! A level of a hierarchy.

use std::sync::Arc;

use femtile_comm::{Border, Halo, OwnedRows};
use femtile_device::{Buffer, Scalar};
use femtile_linalg::hooks::Hook;
use femtile_linalg::{LinalgError, LinearOperator};
use femtile_sparse::csr::Csr;
use femtile_sparse::{MatrixFormat, ProductMatrix};

use crate::AmgConfig;
use crate::kernels::AmgKernels;
use crate::relaxation::Relaxation;
use crate::setup::rank_matrix::totals;
use crate::transfer::Transfer;

/// Cycles of a solve that the choice of a matrix format assumes.
const CYCLES: usize = 10;

/// A level that is smoothed, with the transfers to and from the next one.
#[derive(Debug)]
pub(crate) struct Level<H: Scalar, D: AmgKernels<H>> {
    pub a: LevelMatrix<H, D>,
    pub relaxation: Relaxation<H, D>,
    pub transfer: Transfer<H, D>,
}

impl<H: Scalar, D: AmgKernels<H>> Level<H, D> {
    /// Converts the owned columns to the format of the settings if the smoother is a polynomial.
    ///
    /// # Cost
    /// As [`ProductMatrix::new`].
    pub fn in_format(mut self, config: &AmgConfig) -> Result<Self, LinalgError> {
        let ProductMatrix::Rows(own) = self.a.own else { return Ok(self) };
        let n_products = CYCLES * config.smoother.n_products();
        let format = if n_products > 0 { config.format } else { MatrixFormat::Csr };
        self.a.own = ProductMatrix::new(own, format, n_products, &[])?.0;
        Ok(self)
    }
}

/// The rows of a rank in the matrix of a level.
#[derive(Debug)]
pub(crate) struct LevelMatrix<H: Scalar, D: AmgKernels<H>> {
    /// The owned columns.
    pub own: ProductMatrix<H, D>,
    /// The ghost columns; none on a level that the rank has whole.
    pub border: Option<Border<H, D>>,
}

impl<H: Scalar, D: AmgKernels<H>> LevelMatrix<H, D> {
    /// A matrix of which the rank has all rows.
    pub fn whole(rows: Csr<H, D>) -> Self {
        Self { own: ProductMatrix::Rows(rows), border: None }
    }

    /// The rows of a rank.
    pub fn of_rank(rows: OwnedRows<H, D>, halo: &Arc<Halo>) -> Result<Self, LinalgError> {
        let border = Some(Border::new(rows.border, Arc::clone(halo))?);
        Ok(Self { own: ProductMatrix::Rows(rows.own), border })
    }

    /// Returns the number of entries that the rank stores.
    pub fn n_stored(&self) -> usize {
        self.own.n_stored() + self.border.as_ref().map_or(0, Border::n_nonzeros)
    }

    /// Returns the sums of counts over the ranks of the level. Collective.
    pub fn totals<const N: usize>(&self, counts: [usize; N]) -> Result<[usize; N], LinalgError> {
        self.border.as_ref().map_or(Ok(counts), |border| totals(border.halo().comm(), counts))
    }

    /// Returns $x^\mathsf{T} y$ over all ranks of the level. Collective.
    pub fn dot(&self, x: &Buffer<H, D>, y: &Buffer<H, D>) -> Result<f64, LinalgError> {
        let mut sum = [self.device().amg_dot(x, y)?];
        if let Some(border) = &self.border {
            border.halo().comm().sum_values(&mut sum)?;
        }
        Ok(sum[0])
    }
}

impl<H: Scalar, D: AmgKernels<H>> LinearOperator<H, D> for LevelMatrix<H, D> {
    fn n_rows(&self) -> usize {
        self.own.n_rows()
    }

    fn n_cols(&self) -> usize {
        self.own.n_cols()
    }

    fn device(&self) -> &D {
        self.own.device()
    }

    fn apply_with(
        &self,
        y: &mut Buffer<H, D>,
        x: &Buffer<H, D>,
        hook: &dyn Hook<H>,
    ) -> Result<(), LinalgError> {
        match &self.border {
            Some(border) => border.apply_with(&self.own, y, x, hook),
            None => self.own.apply_with(y, x, hook),
        }
    }
}

/// The coarsest level, which every rank has whole.
#[derive(Debug)]
pub(crate) enum Coarsest<H: Scalar, D: AmgKernels<H>> {
    /// The inverse of its matrix.
    Direct(Csr<H, D>),
    /// A matrix too large for an inverse, which is smoothed only.
    Smoothed { a: Box<LevelMatrix<H, D>>, relaxation: Relaxation<H, D> },
}

impl<H: Scalar, D: AmgKernels<H>> Coarsest<H, D> {
    /// Returns the number of rows.
    pub fn n_rows(&self) -> usize {
        match self {
            Self::Direct(inverse) => inverse.n_rows(),
            Self::Smoothed { a, .. } => a.n_rows(),
        }
    }
}

/// Sizes of a level, over all ranks.
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
