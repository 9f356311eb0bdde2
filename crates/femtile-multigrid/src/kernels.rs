use std::fmt::Debug;

use femtile_device::{Buffer, Scalar};
use femtile_linalg::LinalgError;
use femtile_linalg::vector::{Convert, VectorKernels};

use crate::{BoxGrid, MultigridError, PostOrder, Smoother};

/// Brings the values of other ranks to the planes of a vector that they own.
pub type Refresh<'a, T, D> = dyn FnMut(&mut Buffer<T, D>) -> Result<(), LinalgError> + 'a;

/// Device kernels of geometric multigrid on boxes.
///
/// # Shapes
/// Vectors have a value for each node of their grid, zero at Dirichlet nodes.
pub trait BoxKernels<T: Scalar>: VectorKernels<T> + Convert<f64, T> + Convert<T, f64> {
    /// The operator on a grid.
    type Operator: Debug + Clone + Send + Sync;
    /// A smoother, or the exact solver of the coarsest grid.
    type BoxSmoother: Debug + Clone + Send + Sync;
    /// Restriction and prolongation between two grids.
    type BoxTransfer: Debug + Clone + Send + Sync;

    /// Creates the operator on a grid.
    fn box_operator(&self, grid: &BoxGrid) -> Result<Self::Operator, MultigridError>;

    /// Creates a smoother on a grid.
    fn box_smoother(&self, grid: &BoxGrid, smoother: Smoother) -> Result<Self::BoxSmoother, MultigridError>;

    /// Returns the number of vertex patches, one per vertex with an unknown; none for a smoother without them.
    fn box_patches(&self, grid: &BoxGrid, smoother: Smoother) -> Option<usize>;

    /// Creates the exact solver of the coarsest grid.
    fn box_coarsest(&self, grid: &BoxGrid) -> Result<Self::BoxSmoother, MultigridError>;

    /// Creates the transfer between a grid and a refinement along some axes.
    fn box_transfer(&self, coarse: &BoxGrid, fine: &BoxGrid) -> Result<Self::BoxTransfer, MultigridError>;

    /// $r = b - A x$. Reads 2n, writes n values.
    fn box_residual(
        &self,
        a: &Self::Operator,
        r: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        x: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;

    /// Applies one smoothing step to A x = b; devices may choose different colours for patches.
    fn box_smooth(
        &self,
        smoother: &Self::BoxSmoother,
        x: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        order: PostOrder,
    ) -> Result<(), LinalgError>;

    /// As [`BoxKernels::box_smooth`] with x = 0, so that b is the residual.
    fn box_smooth_zero(
        &self,
        smoother: &Self::BoxSmoother,
        x: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
        order: PostOrder,
    ) -> Result<(), LinalgError> {
        self.box_smooth(smoother, x, b, order)
    }

    /// Returns the number of ghost layers of cells below and above the layers of a rank. With them, one step
    /// of the smoother and a restriction equal those of the whole grid.
    fn box_layers(&self, _grid: &BoxGrid, _smoother: Smoother) -> [usize; 2] {
        [2, 2]
    }

    /// Returns the largest eigenvalue that a smoother has estimated on its grid, if it needs one that does not follow from
    /// the widths of cells. All ranks must use the largest of their estimates.
    fn box_largest(&self, smoother: &Self::BoxSmoother) -> Option<f64>;

    /// Sets this eigenvalue.
    fn box_set_largest(&self, smoother: &mut Self::BoxSmoother, largest: f64) -> Result<(), MultigridError>;

    /// As [`BoxKernels::box_smooth`], or [`BoxKernels::box_smooth_zero`] if x is zero, on the layers of a
    /// rank. `refresh` exchanges ghost planes, for smoothers that need this between their products. At the
    /// end x has the values of the whole grid only on the planes that the rank owns.
    fn box_smooth_part(
        &self,
        smoother: &Self::BoxSmoother,
        (x, b): (&mut Buffer<T, Self>, &Buffer<T, Self>),
        (order, is_zero): (PostOrder, bool),
        _refresh: &mut Refresh<'_, T, Self>,
    ) -> Result<(), LinalgError> {
        if is_zero {
            self.box_smooth_zero(smoother, x, b, order)
        } else {
            self.box_smooth(smoother, x, b, order)
        }
    }

    /// $b_{\ell-1} = I^\mathsf{T} b_\ell$ on unknowns. Reads n values.
    fn box_restrict(
        &self,
        transfer: &Self::BoxTransfer,
        coarse: &mut Buffer<T, Self>,
        b: &Buffer<T, Self>,
    ) -> Result<(), LinalgError>;

    /// $b_{\ell-1} = I^\mathsf{T} (b_\ell - A x_\ell)$ on unknowns. Reads 2n values.
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

    /// $y \leftarrow y + \alpha x$ in f64. Reads 2n, writes n values.
    fn box_add(&self, y: &mut Buffer<f64, Self>, alpha: f64, x: &Buffer<T, Self>) -> Result<(), LinalgError>;
}
