use std::fmt::Debug;

use femtile_device::{Buffer, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::{Convert, VectorKernels};

use crate::{BoxGrid, MultigridError, PostOrder, Smoother};

/// What a device does on the levels of multigrid on boxes.
///
/// # Shapes
/// Vectors have a value for each node of their grid, zero on the boundary.
pub trait BoxKernels<T: Scalar>: VectorKernels<T> + Convert<f64, T> + Convert<T, f64> {
    /// The operator on a grid.
    type Operator: Debug + Clone + Send + Sync;
    /// A smoother on a grid, or an exact solve.
    type Sweep: Debug + Clone + Send + Sync;
    /// What carries vectors between a grid and a refined one.
    type BoxTransfer: Debug + Clone + Send + Sync;

    /// The operator on a grid.
    fn box_operator(&self, grid: &BoxGrid) -> Result<Self::Operator, MultigridError>;

    /// A smoother on a grid.
    fn box_sweep(&self, grid: &BoxGrid, smoother: Smoother) -> Result<Self::Sweep, MultigridError>;

    /// How many patches such a smoother has, where it has some: one for each vertex with an unknown.
    fn box_patches(&self, grid: &BoxGrid) -> usize;

    /// A smoother one step of which solves exactly.
    fn box_coarsest(&self, grid: &BoxGrid) -> Result<Self::Sweep, MultigridError>;

    /// Between a grid and one with cells halved along some axes.
    fn box_transfer(&self, coarse: &BoxGrid, fine: &BoxGrid) -> Result<Self::BoxTransfer, MultigridError>;

    /// $r = b - A x$. Reads 2n, writes n values.
    fn box_residual(
        &self,
        a: &Self::Operator,
        r: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;

    /// One step of a smoother for A x = b. What each of $2^d$ colours moves depends on the device.
    fn box_smooth(
        &self,
        sweep: &Self::Sweep,
        x: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        order: PostOrder,
    ) -> Result<(), LinalgError>;

    /// $b_{\ell-1} = I^\mathsf{T} b_\ell$ on nodes inside. Reads n values.
    fn box_restrict(
        &self,
        transfer: &Self::BoxTransfer,
        coarse: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;

    /// $b_{\ell-1} = I^\mathsf{T} (b_\ell - A x_\ell)$ on nodes inside. Reads 2n values.
    fn box_restrict_residual(
        &self,
        transfer: &Self::BoxTransfer,
        coarse: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;

    /// $x_\ell \leftarrow x_\ell + I x_{\ell-1}$. Reads and writes n values.
    fn box_prolongate(
        &self,
        transfer: &Self::BoxTransfer,
        x: &mut Buffer<T, Self>,
        coarse: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;

    /// $y \leftarrow y + \alpha x$ in double precision. Reads 2n, writes n values.
    fn box_add(&self, y: &mut Buffer<f64, Self>, alpha: f64, x: &Buffer<T, Self>) -> Result<(), LinalgError>;
}
