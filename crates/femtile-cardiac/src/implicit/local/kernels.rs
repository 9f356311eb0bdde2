use std::fmt::Debug;

use femtile::device::Buffer;
use femtile::linalg::need;
use femtile::linalg::vector::VectorKernels;

use crate::CardiacError;
use crate::ionic::{Model, stride_of};

/// Kernels that solve the implicit Euler equations of the states of a model at many points.
///
/// # Shapes
/// Vectors have one entry per point. States are `[n_states][stride]` with the stride of
/// [`Points`](crate::ionic::Points).
/// # Errors
/// [`LinalgError::Length`](femtile::linalg::LinalgError::Length) for arrays of another length.
pub trait ImplicitKernels: VectorKernels<f64> {
    /// A model compiled for implicit equations.
    type ImplicitProgram: Debug + Send + Sync;

    /// Compiles a model for [`ImplicitKernels::implicit_solve`].
    ///
    /// # Errors
    /// [`CardiacError::Setting`] for models with more than [`MAX_STATES`](super::MAX_STATES) states.
    fn implicit_prepare(&self, model: &Model) -> Result<Self::ImplicitProgram, CardiacError>;

    /// Solves the implicit Euler equations of the states at given voltages and returns the number of points at which
    /// Newton's method did not converge.
    ///
    /// $$ w - w_{old} - Δt\,g(V, w) = 0, \qquad I = I_{ion}(V, w), \qquad
    ///    \frac{dI}{dV} = \frac{\partial I}{\partial V} + \frac{\partial I}{\partial w}\,
    ///    \Bigl(1 - Δt\frac{\partial g}{\partial w}\Bigr)^{-1} Δt\frac{\partial g}{\partial V} $$
    ///
    /// `states`, and `results` with the current and its tangent, are overwritten. At points without convergence,
    /// `states` are those of the last iteration.
    ///
    /// # Source
    /// `[wong2015]`, Table 1, local Newton iteration; here for several states.
    fn implicit_solve(
        &self,
        program: &Self::ImplicitProgram,
        states: &mut Buffer<f64, Self>,
        results: [&mut Buffer<f64, Self>; 2],
        v: &Buffer<f64, Self>,
        old_states: &Buffer<f64, Self>,
        dt: f64,
    ) -> Result<usize, CardiacError>;
}

/// Checks the lengths of the arrays of [`ImplicitKernels::implicit_solve`] for a model of `n_states`; returns the number of
/// points and the stride of states.
pub(super) fn check<D: ImplicitKernels>(
    n_states: usize,
    [states, old_states]: [&Buffer<f64, D>; 2],
    [current, tangent]: [&Buffer<f64, D>; 2],
    v: &Buffer<f64, D>,
) -> Result<[usize; 2], CardiacError> {
    let n = v.len();
    let stride = stride_of(n);
    need("current", n, current.len())?;
    need("tangent", n, tangent.len())?;
    need("states", n_states * stride, states.len())?;
    need("old_states", n_states * stride, old_states.len())?;
    Ok([n, stride])
}
