use femtile_device::{Buffer, Device, Scalar};
use femtile_linalg::{LinalgError, need};

use super::BlockShape;
use crate::{Algorithm, Stability, Work};

/// The blocks below, on and above the diagonal of all systems, each array in the order of the shape.
///
/// The first lower and the last upper block of a system are not used.
#[derive(Debug)]
pub struct BlockBands<'a, T: Scalar, D: Device> {
    /// $A_i$.
    pub lower: &'a Buffer<T, D>,
    /// $B_i$.
    pub diagonal: &'a Buffer<T, D>,
    /// $C_i$.
    pub upper: &'a Buffer<T, D>,
}

impl<T: Scalar, D: Device> Clone for BlockBands<'_, T, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Scalar, D: Device> Copy for BlockBands<'_, T, D> {}

/// A batch as kernels see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockProblem {
    /// Sizes and order of the arrays.
    pub shape: BlockShape,
    /// The algorithm; never [`Algorithm::Auto`] once a device has chosen.
    pub algorithm: Algorithm,
    /// Whether rows are exchanged within a block.
    pub stability: Stability,
}

impl BlockProblem {
    /// Refuses arrays that have not the lengths of the shape; says whether there is anything to solve.
    ///
    /// # Errors
    /// [`LinalgError::Length`] with the first array of another length, [`LinalgError::Setting`] for a shape that cannot be.
    pub(super) fn check<T: Scalar, D: Device>(
        &self,
        u: &Buffer<T, D>,
        bands: BlockBands<'_, T, D>,
        d: Option<&Buffer<T, D>>,
        work: &Work<T, D>,
    ) -> Result<bool, LinalgError> {
        self.shape.check()?;
        let (band_len, vector_len) = (self.shape.band_len(), self.shape.vector_len());
        need("status", 2, work.status.len())?;
        need("u", vector_len, u.len())?;
        need("d", vector_len, d.map_or(vector_len, Buffer::len))?;
        need("lower", band_len, bands.lower.len())?;
        need("diagonal", band_len, bands.diagonal.len())?;
        need("upper", band_len, bands.upper.len())?;
        Ok(vector_len > 0)
    }
}

/// The kernels that solve batches of block tridiagonal systems.
pub trait BlockTridiagonalKernels<T: Scalar>: Device {
    /// The algorithm for a batch: the one that was asked for, or the fastest for [`Algorithm::Auto`].
    ///
    /// # Errors
    /// [`LinalgError::Setting`] when this device has no such algorithm for blocks.
    fn block_choice(&self, problem: &BlockProblem) -> Result<Algorithm, LinalgError>;

    /// Queues the solution of all systems into `u`, whose values are the right sides where `d` is none.
    ///
    /// Systems that fail are filled with NaN and noted in `work.status` as `system * n_rows + row`.
    ///
    /// # Shapes
    /// `u`, `d`: N P M; each band: N P M².
    /// # Cost
    /// Reads 3M² + M and writes M values a block row; some 14/3 M³ + 6M² operations. Where the intermediate
    /// $C^*$ and $d^*$ leave the caches, 2 (M² + M) values more.
    /// # Errors
    /// [`LinalgError::Length`] when an array has not the length of the shape; those of
    /// [`BlockTridiagonalKernels::block_choice`]; errors of the device.
    fn block_solve(
        &self,
        problem: &BlockProblem,
        u: &mut Buffer<T, Self>,
        bands: BlockBands<'_, T, Self>,
        d: Option<&Buffer<T, Self>>,
        work: &mut Work<T, Self>,
    ) -> Result<(), LinalgError>;
}
