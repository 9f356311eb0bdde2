use std::fmt::Debug;

use femtile::device::Buffer;
use femtile::linalg::need;
use femtile::linalg::vector::VectorKernels;

use super::{GatePrecision, LocalScheme, Model, Points, States};
use crate::CardiacError;

/// Kernels that integrate a model of the membrane at many points.
///
/// # Shapes
/// Vectors over nodes have `points.n_nodes()` entries. States are `[n_states][points.stride()]`; the first
/// `points.len()` of each row are used. They have 64 bits in implicit steps.
/// # Errors
/// [`LinalgError::Length`](femtile::linalg::LinalgError::Length) for arrays of another length.
pub trait IonicKernels: VectorKernels<f64> {
    /// A model compiled for the steps of a scheme.
    type Program: Debug + Send + Sync;

    /// A model compiled for implicit equations.
    type ImplicitProgram: Debug + Send + Sync;

    /// Compiles a model for a scheme.
    ///
    /// # Errors
    /// Errors of the device.
    fn ionic_prepare(
        &self,
        model: &Model,
        scheme: LocalScheme,
        gates: GatePrecision,
    ) -> Result<Self::Program, CardiacError>;

    /// Advances voltage and states at all points by one step of the scheme.
    ///
    /// $$ V \leftarrow V + Δt(-I_{ion}(V, w) + I_{stim}), \qquad w \leftarrow w + Δt\,g(V, w) $$
    ///
    /// as [`LocalScheme`] says; the stimulus is constant within the step, and zero if there is none.
    ///
    /// # Cost
    /// Reads and writes `1 + n_states` values per point, and reads the stimulus.
    fn ionic_advance(
        &self,
        program: &Self::Program,
        points: &Points<Self>,
        v: &mut Buffer<f64, Self>,
        states: &mut States<Self>,
        stimulus: Option<&Buffer<f64, Self>>,
        dt: f64,
    ) -> Result<(), CardiacError>;

    /// Compiles a model for [`IonicKernels::ionic_implicit`].
    ///
    /// # Errors
    /// [`CardiacError::Setting`] for models with more than [`MAX_IMPLICIT_STATES`](super::MAX_IMPLICIT_STATES) states.
    fn ionic_prepare_implicit(&self, model: &Model) -> Result<Self::ImplicitProgram, CardiacError>;

    /// Solves the implicit Euler equations of the states at given voltages and returns the number of points at which
    /// Newton's method did not converge.
    ///
    /// $$ w - w_{old} - Δt\,g(V, w) = 0, \qquad I = I_{ion}(V, w), \qquad
    ///    \frac{dI}{dV} = \frac{\partial I}{\partial V} + \frac{\partial I}{\partial w}\,
    ///    \Bigl(1 - Δt\frac{\partial g}{\partial w}\Bigr)^{-1} Δt\frac{\partial g}{\partial V} $$
    ///
    /// `states`, `current` and `tangent` are overwritten at the points. At points without convergence, `states` are
    /// those of the last iteration.
    ///
    /// # Source
    /// `[wong2015]`, Table 1, local Newton iteration; here for several states.
    #[expect(clippy::too_many_arguments, reason = "four arrays of a point and their places")]
    fn ionic_implicit(
        &self,
        program: &Self::ImplicitProgram,
        points: &Points<Self>,
        v: &Buffer<f64, Self>,
        old_states: &Buffer<f64, Self>,
        states: &mut Buffer<f64, Self>,
        current: &mut Buffer<f64, Self>,
        tangent: &mut Buffer<f64, Self>,
        dt: f64,
    ) -> Result<usize, CardiacError>;
}

/// Checks the lengths of vectors over nodes.
pub(super) fn check<D: IonicKernels>(
    points: &Points<D>,
    vectors: &[(&'static str, &Buffer<f64, D>)],
) -> Result<(), CardiacError> {
    vectors.iter().try_for_each(|(name, vector)| Ok(need(name, points.n_nodes(), vector.len())?))
}

/// Checks the lengths of the arrays of a step, whose stimulus may be left out.
pub(super) fn check_step<D: IonicKernels>(
    points: &Points<D>,
    [n_states, n_single]: [usize; 2],
    v: &Buffer<f64, D>,
    states: &States<D>,
    stimulus: Option<&Buffer<f64, D>>,
) -> Result<(), CardiacError> {
    check(points, &[("v", v), ("stimulus", stimulus.unwrap_or(v))])?;
    states.check(n_states, n_single, points)
}

/// Checks the lengths of states with 64 bits.
pub(super) fn check_states<D: IonicKernels>(
    points: &Points<D>,
    n_states: usize,
    states: &[(&'static str, &Buffer<f64, D>)],
) -> Result<(), CardiacError> {
    states.iter().try_for_each(|(name, states)| Ok(need(name, n_states * points.stride(), states.len())?))
}
