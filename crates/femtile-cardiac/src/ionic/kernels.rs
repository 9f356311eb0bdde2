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
/// `points.len()` of each row are used.
/// # Errors
/// [`LinalgError::Length`](femtile::linalg::LinalgError::Length) for arrays of another length.
pub trait IonicKernels: VectorKernels<f64> {
    /// A model compiled for the steps of a scheme.
    type Program: Debug + Send + Sync;

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
}

/// Checks the lengths of the arrays of a step, whose stimulus may be left out.
pub(super) fn check_step<D: IonicKernels>(
    points: &Points<D>,
    [n_states, n_single]: [usize; 2],
    v: &Buffer<f64, D>,
    states: &States<D>,
    stimulus: Option<&Buffer<f64, D>>,
) -> Result<(), CardiacError> {
    need("v", points.n_nodes(), v.len())?;
    need("stimulus", points.n_nodes(), stimulus.unwrap_or(v).len())?;
    states.check(n_states, n_single, points)
}
