use femtile_device::{Buffer, Scalar};

use super::{CgHistory, CgProgress, CgScalars};
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
/// [`LinalgError::Length`] when vectors of one call differ in length.
pub trait CgKernels<T: Scalar>: VectorKernels<T> {
    /// Returns the iterations started between two looks of the host at the residual, unless the settings give it.
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

    /// $q = A p$ and $p^\mathsf{T} q$ into `scalars`, summed while q is in cache.
    fn cg_product(
        &self,
        q: &mut Buffer<T, Self>,
        a: &dyn LinearOperator<T, Self>,
        p: &Buffer<T, Self>,
        scalars: &mut CgScalars<Self>,
    ) -> Result<(), LinalgError>;

    /// $\rho = r^\mathsf{T} z$ before the first iteration; ends the method unless it is positive.
    fn cg_start(&self, scalars: &mut CgScalars<Self>) -> Result<(), LinalgError>;

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

    /// $r^\mathsf{T} z$ into `scalars`.
    fn cg_r_dot_z(
        &self,
        r: &Buffer<T, Self>,
        z: &Buffer<T, Self>,
        scalars: &mut CgScalars<Self>,
    ) -> Result<(), LinalgError>;

    /// $q^\mathsf{T} z$ into `scalars`.
    fn cg_q_dot_z(
        &self,
        q: &Buffer<T, Self>,
        z: &Buffer<T, Self>,
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

    /// Reads the progress of the solve and appends new iterations to `history`.
    ///
    /// `history` holds $r^\mathsf{T} r$ of the start and the results of each iteration read before. A device
    /// may return the progress as of the previous call, so that it need not wait for the host;
    /// [`CgKernels::cg_settle`] returns the current one.
    fn cg_poll(
        &self,
        scalars: &mut CgScalars<Self>,
        history: &mut CgHistory,
    ) -> Result<CgProgress, LinalgError> {
        self.cg_settle(scalars, history)
    }

    /// Waits for the iterations started so far and looks at the solve as [`CgKernels::cg_poll`] does.
    fn cg_settle(
        &self,
        scalars: &mut CgScalars<Self>,
        history: &mut CgHistory,
    ) -> Result<CgProgress, LinalgError> {
        scalars.reading = None;
        let state = scalars.state.to_host()?;
        Ok(scalars.progress(&state, history)?)
    }
}
