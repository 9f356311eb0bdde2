use femtile_device::{Buffer, Device, Scalar};
use femtile_linalg::LinalgError;
use femtile_sparse::csr::Csr;

use super::{DoublePartition, PatchMatrix, PatchSmoother};
use crate::Graph;
use crate::setup::rows::Rows;

/// The kernels of the patch smoother.
///
/// # Errors
/// [`LinalgError::Length`] for vectors without an entry for each row.
pub trait PatchKernels<H: Scalar>: Device {
    /// Computes a step from zero and the part of its residual within patches:
    /// $x = \omega M^{-1} b$, $\tilde r = b - (A_I + A_D) x$.
    ///
    /// # Cost
    /// Reads $A_I$ once and three values per row, writes two; `inner` products with $A_I$ in fast memory.
    /// # Source
    /// `[fu2014]`, section 5.2.2, the kernel prerelax-residual of Algorithm 5.3.
    fn patch_relax_from_zero(
        &self,
        x: &mut Buffer<H, Self>,
        r: &mut Buffer<H, Self>,
        by: &PatchSmoother<H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError>;

    /// Computes a step from `x` with a right side from which the contribution of other patches was subtracted:
    /// $x = x + \omega M^{-1} (\tilde b - (A_I + A_D) x)$.
    ///
    /// # Cost
    /// Reads $A_I$ once and four values per row, and writes one; `inner` products with $A_I$ in fast memory.
    /// # Source
    /// `[fu2014]`, section 5.2.2, the kernel post-relax of Algorithm 5.3.
    fn patch_relax(
        &self,
        x: &mut Buffer<H, Self>,
        by: &PatchSmoother<H, Self>,
        b: &Buffer<H, Self>,
    ) -> Result<(), LinalgError>;

    /// Computes $y = y - A_B x$: the correction of the residual after a step from zero, and of the right side
    /// before a step.
    ///
    /// # Cost
    /// Reads $A_B$, and x in its non-empty columns; reads and writes y in its non-empty rows.
    fn patch_subtract_outside(
        &self,
        y: &mut Buffer<H, Self>,
        matrix: &PatchMatrix<H, Self>,
        x: &Buffer<H, Self>,
    ) -> Result<(), LinalgError>;

    /// Returns a restriction with its rows in another order, and its transpose, the prolongator.
    ///
    /// # Cost
    /// Reads and writes the matrix three times.
    #[allow(clippy::type_complexity)]
    fn patch_reordered(
        &self,
        r: &Csr<H, Self>,
        order: &Buffer<u32, Self>,
    ) -> Result<(Csr<H, Self>, Csr<H, Self>), LinalgError> {
        let r = Rows::as_is(r)?.with_rows(&order.to_host()?);
        let p = r.transpose();
        Ok((r.into_device(self)?, p.into_device(self)?))
    }

    /// Returns the aggregates and patches of a graph, found in rounds and equal on every device. None if the
    /// device leaves them to the host.
    ///
    /// # Source
    /// `[fu2014]`, section 5.2.1, the double partition.
    fn patch_partition(
        &self,
        graph: &Graph,
        least_aggregate: u32,
    ) -> Result<Option<DoublePartition>, LinalgError> {
        Ok(Some(DoublePartition::of(graph, least_aggregate)))
    }
}
