use femtile::device::Buffer;
use femtile::linalg::vector::VectorKernels;
use femtile::linalg::{LinalgError, need};

use super::ActivationState;

/// Potentials that activation and repolarisation are defined by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Levels {
    /// Upward crossings are activations.
    pub threshold: f64,
    /// Potential at rest.
    pub rest: f64,
    /// Share of the amplitude that remains at repolarisation.
    pub remaining: f64,
}

/// A step in time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Its begin.
    pub begin: f64,
    /// Its length.
    pub length: f64,
}

/// The kernel of activation maps.
pub trait ActivationKernels: VectorKernels<f64> {
    /// Records crossings from `state.previous` to `v`, then sets `state.previous = v`.
    ///
    /// With $\theta = (L - V_{old}) / (V_{new} - V_{old})$, a level L is crossed at $t + \theta h$.
    ///
    /// # Shapes
    /// All arrays have one entry for each point.
    /// # Cost
    /// Reads three values and writes one per point, and more at a crossing.
    /// # Errors
    /// [`LinalgError::Length`] if lengths differ.
    fn activation_record(
        &self,
        state: &mut ActivationState<Self>,
        v: &Buffer<f64, Self>,
        levels: Levels,
        step: Interval,
    ) -> Result<(), LinalgError>;
}

/// Checks that all arrays have the length of the potentials.
pub(super) fn check<D: VectorKernels<f64>>(
    state: &ActivationState<D>,
    v: &Buffer<f64, D>,
) -> Result<(), LinalgError> {
    let ActivationState { previous, first, last, peak, repolarisation, duration } = state;
    let n = v.len();
    for (name, array) in [
        ("previous", previous),
        ("first", first),
        ("last", last),
        ("peak", peak),
        ("repolarisation", repolarisation),
        ("duration", duration),
    ] {
        need(name, n, array.len())?;
    }
    Ok(())
}
