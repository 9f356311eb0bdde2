//! The tangent, whose values change from one linear solve to the next.

use std::sync::{PoisonError, RwLock};

use femtile::device::Buffer;
use femtile::linalg::hooks::Hook;
use femtile::linalg::sparse::{ProductMatrix, StoredMatrix};
use femtile::linalg::{LinalgError, LinearOperator};

use crate::CardiacDevice;

/// A matrix that a solver keeps while its values are replaced in place, so that recordings with it stay valid.
pub(super) struct Tangent<D: CardiacDevice> {
    device: D,
    n: usize,
    matrix: RwLock<ProductMatrix<f64, D>>,
}

impl<D: CardiacDevice> Tangent<D> {
    /// Creates the tangent from a square matrix.
    pub fn new(matrix: ProductMatrix<f64, D>) -> Self {
        Self { device: matrix.device().clone(), n: matrix.n_rows(), matrix: RwLock::new(matrix) }
    }

    /// Sets the values to $a + \alpha b$.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn combine(&self, a: &Buffer<f64, D>, (alpha, b): (f64, &Buffer<f64, D>)) -> Result<(), LinalgError> {
        let mut matrix = self.matrix.write().unwrap_or_else(PoisonError::into_inner);
        matrix.combine_values(1.0, a, 0.0)?;
        matrix.combine_values(alpha, b, 1.0)
    }
}

impl<D: CardiacDevice> LinearOperator<f64, D> for Tangent<D> {
    fn n_rows(&self) -> usize {
        self.n
    }

    fn n_cols(&self) -> usize {
        self.n
    }

    fn device(&self) -> &D {
        &self.device
    }

    fn apply_with(
        &self,
        y: &mut Buffer<f64, D>,
        x: &Buffer<f64, D>,
        hook: &dyn Hook<f64>,
    ) -> Result<(), LinalgError> {
        let matrix = self.matrix.read().unwrap_or_else(PoisonError::into_inner);
        D::matrix_operator(&matrix).apply_with(y, x, hook)
    }
}
