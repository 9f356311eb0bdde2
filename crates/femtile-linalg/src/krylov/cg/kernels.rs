use femtile_device::{Buffer, Scalar};

use super::{CgBegin, CgDiagonals, CgExtrapolate, CgFinish, CgScalars, CgSums};
use crate::vector::VectorKernels;
use crate::{LinalgError, LinearOperator};

/// The passes of conjugate gradients, fused so that each vector is moved as rarely as the recurrences allow.
///
/// No pass waits for the host: all numbers stay on the device, and once the method has ended there
/// ([`CgScalars::END`]) further iterations leave `x` and the counters as they are. A device may thus
/// run several iterations, such as a recorded graph of them, before the host looks.
///
/// # Cost
/// One iteration with a diagonal preconditioner moves 10n values besides the product `q = A p`:
/// `cg_residual` reads r, q, d and writes r; `cg_direction` reads x, p, r, d and writes x, p.
/// # Errors
/// [`LinalgError::Length`] when vectors of one call differ in length, or [`CgScalars`] or [`CgSums`] belong to shorter
/// ones.
pub trait CgKernels<T: Scalar>: VectorKernels<T> {
    /// Returns the iterations started between two looks of the host at the residual, unless the settings give it; 1 if
    /// the host runs them itself.
    fn cg_stride(&self) -> usize {
        1
    }

    /// Returns the number of addends that each sum in [`CgScalars`] is kept as.
    fn cg_addends(&self) -> usize {
        1
    }

    /// Returns the number of partial sums that the kernels need for vectors of `n` entries.
    fn cg_partials(&self, _n: usize) -> usize {
        0
    }

    /// Returns the number of partial sums that [`CgSums`] need for vectors of `n` entries.
    fn cg_sum_partials(&self, _n: usize) -> usize {
        0
    }

    /// $r = q + w(q - q_0)$, $x \leftarrow x + w(x - x_0)$, $x_0 \leftarrow x$, $q_0 \leftarrow q$, all with the values
    /// before: two solutions and their products become the next guess and its product.
    ///
    /// # Cost
    /// Reads and writes four vectors.
    fn cg_extrapolate(&self, vectors: CgExtrapolate<'_, T, Self>, weight: T) -> Result<(), LinalgError>;

    /// Computes $r = b - q$ from r, which holds $q = A x$; $s = x$ if a copy is asked for; and
    /// $p = M^{-1} r$ if $M^{-1}$ is diagonal. Leaves the sums [`CgSums::B_DOT_B`] to [`CgSums::B_NORM`] in [`CgSums::first`].
    ///
    /// # Cost
    /// Reads q, b and the diagonals, writes r and, with a diagonal, p; reads x and writes s.
    fn cg_begin(
        &self,
        vectors: CgBegin<'_, T, Self>,
        diagonals: CgDiagonals<'_, T, Self>,
        sums: &mut CgSums<Self>,
    ) -> Result<(), LinalgError>;

    /// Leaves $x^\mathsf{T} y$ at a place of [`CgSums::first`].
    fn cg_first_dot(
        &self,
        place: usize,
        x: &Buffer<T, Self>,
        y: &Buffer<T, Self>,
        sums: &mut CgSums<Self>,
    ) -> Result<(), LinalgError>;

    /// Sets `scalars` to the start of a solve by the first sums and the settings: the threshold, and whether the method runs,
    /// has converged, or does not begin as a norm is out of its range; copies the first sums to
    /// [`CgScalars::FIRST_SUMS`].
    fn cg_decide(&self, scalars: &mut CgScalars<Self>, sums: &CgSums<Self>) -> Result<(), LinalgError>;

    /// $q = A p$ and $p^\mathsf{T} q$ into `scalars`, summed while q is in cache.
    fn cg_product(
        &self,
        q: &mut Buffer<T, Self>,
        a: &dyn LinearOperator<T, Self>,
        p: &Buffer<T, Self>,
        scalars: &mut CgScalars<Self>,
    ) -> Result<(), LinalgError>;

    /// $\alpha = \rho / p^\mathsf{T} q$; ends the method unless $p^\mathsf{T} q$ is positive. Once ended, $\alpha = 0$.
    fn cg_step_length(&self, scalars: &mut CgScalars<Self>) -> Result<(), LinalgError>;

    /// $r \mathrel{-}= \alpha q$, then $r^\mathsf{T} r$ and, with a diagonal, $r^\mathsf{T} D^{-1} r$ into `scalars`.
    fn cg_residual(
        &self,
        r: &mut Buffer<T, Self>,
        q: &Buffer<T, Self>,
        inverse_diagonal: Option<&Buffer<T, Self>>,
        scalars: &mut CgScalars<Self>,
    ) -> Result<(), LinalgError>;

    /// Leaves $x^\mathsf{T} y$ at [`CgScalars::R_DOT_Z`] or [`CgScalars::Q_DOT_Z`] in `scalars`.
    fn cg_dot(
        &self,
        place: usize,
        x: &Buffer<T, Self>,
        y: &Buffer<T, Self>,
        scalars: &mut CgScalars<Self>,
    ) -> Result<(), LinalgError>;

    /// Counts the iteration and stores $r^\mathsf{T} r$. Ends the method if $r^\mathsf{T} r$ is below the
    /// threshold, if the limit of iterations is reached, or if $r^\mathsf{T} z$ is not positive. Then sets
    /// $\beta = r^\mathsf{T} z / \rho$, or $-\alpha q^\mathsf{T} z / \rho$ in flexible mode, and
    /// $\rho = r^\mathsf{T} z$. Does nothing once the method has ended.
    fn cg_conjugation(&self, scalars: &mut CgScalars<Self>) -> Result<(), LinalgError>;

    /// $x \mathrel{+}= \alpha p$, then $p = D^{-1} z + \beta p$ (without $D^{-1}$ if there is no diagonal).
    ///
    /// If $\alpha = 0$, x is unchanged, whatever p holds.
    fn cg_direction(
        &self,
        p: &mut Buffer<T, Self>,
        x: &mut Buffer<T, Self>,
        z: &Buffer<T, Self>,
        inverse_diagonal: Option<&Buffer<T, Self>>,
        scalars: &mut CgScalars<Self>,
    ) -> Result<(), LinalgError>;

    /// Leaves [`CgSums::last`] of the iterate x, with $q = A x$ and $r = b - q$; z is the last preconditioned
    /// residual.
    ///
    /// # Cost
    /// Reads q, b, x, z and the diagonal.
    fn cg_finish(&self, vectors: CgFinish<'_, T, Self>, sums: &mut CgSums<Self>) -> Result<(), LinalgError>;
}
