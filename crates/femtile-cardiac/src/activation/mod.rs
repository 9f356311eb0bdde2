//! Times of activation and repolarisation at every point, found while a run continues.

#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
pub(crate) mod cuda;
mod kernels;
mod reference;
mod velocity;

use femtile::device::{Buffer, Device};
use femtile::linalg::LinalgError;

use crate::CardiacError;
use crate::ionic::Model;
pub use kernels::{ActivationKernels, Interval, Levels};
pub use velocity::conduction_velocity;

/// The potentials that define activation and repolarisation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ActivationConfig {
    /// The potential whose upward crossing is an activation.
    pub threshold: f64,
    /// The potential at rest.
    pub rest: f64,
    /// The share of the amplitude, the peak above rest, that is lost at repolarisation: 0.9 for APD₉₀.
    pub repolarised: f64,
}

impl ActivationConfig {
    /// Returns the usual levels for a model: 0 mV, or half way up for models without units; 90 %.
    pub fn of_model(model: &Model) -> Self {
        let rest = model.rest_voltage();
        let threshold = if model.units().is_physical() { 0.0 } else { rest + 0.5 };
        Self { threshold, rest, repolarised: 0.9 }
    }

    fn levels(&self) -> Result<Levels, CardiacError> {
        if !(self.repolarised > 0.0 && self.repolarised < 1.0) {
            let message = format!("{} does not lie between 0 and 1; 0.9 is usual", self.repolarised);
            return Err(CardiacError::setting("repolarised", message));
        }
        if !(self.threshold.is_finite() && self.rest.is_finite() && self.threshold > self.rest) {
            let message = format!("{} has to lie above the potential at rest, {}", self.threshold, self.rest);
            return Err(CardiacError::setting("threshold", message));
        }
        Ok(Levels { threshold: self.threshold, rest: self.rest, remaining: 1.0 - self.repolarised })
    }
}

/// Times of activation and repolarisation of each point, on a device.
///
/// An activation is an upward crossing of the threshold, found by linear interpolation within a step; the
/// first and the last one are kept. Repolarisation is the first moment after the activation with a potential
/// below $V_{rest} + (1 - s)(V_{peak} - V_{rest})$. $V_{peak}$ is the largest potential since the activation,
/// and $s$ the share.
pub struct ActivationMap<D: Device> {
    levels: Levels,
    state: ActivationState<D>,
}

/// Arrays of an activation map; times are NaN until there is one.
///
/// # Shapes
/// Each array has one entry for each point.
#[derive(Debug)]
pub struct ActivationState<D: Device> {
    /// Potential at the end of the last step.
    pub previous: Buffer<f64, D>,
    /// Time of the first activation.
    pub first: Buffer<f64, D>,
    /// Time of the last activation.
    pub last: Buffer<f64, D>,
    /// Largest potential since the last activation.
    pub peak: Buffer<f64, D>,
    /// Time of the last repolarisation.
    pub repolarisation: Buffer<f64, D>,
    /// Duration of the last complete action potential.
    pub duration: Buffer<f64, D>,
}

/// Times of activation and repolarisation on the host; NaN if there was none.
#[derive(Debug, Clone, PartialEq)]
pub struct ActivationTimes {
    /// First activation.
    pub first: Vec<f64>,
    /// Last activation.
    pub last: Vec<f64>,
    /// Last repolarisation.
    pub repolarisation: Vec<f64>,
    /// Duration of the last complete action potential.
    pub duration: Vec<f64>,
}

/// Brings an array to the host.
type ToHost<'a, D> = dyn Fn(&Buffer<f64, D>) -> Result<Vec<f64>, CardiacError> + 'a;

impl<D: ActivationKernels> ActivationMap<D> {
    /// Begins with the potentials at the start of a run; points above the threshold do not count as activated.
    ///
    /// # Errors
    /// [`CardiacError::Setting`] for levels in no order; errors of the device.
    pub fn new(config: &ActivationConfig, v: &Buffer<f64, D>) -> Result<Self, CardiacError> {
        let (device, n) = (v.device(), v.len());
        let filled = |value| {
            let mut buffer = Buffer::zeros(device, n)?;
            device.fill(&mut buffer, value)?;
            Ok::<_, LinalgError>(buffer)
        };
        let mut previous = filled(0.0)?;
        device.copy(&mut previous, v)?;
        let [first, last, repolarisation, duration] =
            [filled(f64::NAN)?, filled(f64::NAN)?, filled(f64::NAN)?, filled(f64::NAN)?];
        let peak = filled(config.rest)?;
        let state = ActivationState { previous, first, last, peak, repolarisation, duration };
        Ok(Self { levels: config.levels()?, state })
    }

    /// Records the crossings of a step that ends with the potentials `v`.
    ///
    /// # Errors
    /// [`LinalgError::Length`] if `v` has another length.
    pub fn record(&mut self, v: &Buffer<f64, D>, step: Interval) -> Result<(), LinalgError> {
        v.device().activation_record(&mut self.state, v, self.levels, step)
    }

    /// Returns the arrays of the state, in a fixed order.
    pub(crate) fn arrays(&self) -> [&Buffer<f64, D>; 6] {
        let ActivationState { previous, first, last, peak, repolarisation, duration } = &self.state;
        [previous, first, last, peak, repolarisation, duration]
    }

    /// Returns the arrays of the state for writing, in the same order.
    pub(crate) fn arrays_mut(&mut self) -> [&mut Buffer<f64, D>; 6] {
        let ActivationState { previous, first, last, peak, repolarisation, duration } = &mut self.state;
        [previous, first, last, peak, repolarisation, duration]
    }

    /// Returns the times.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn times(&self) -> Result<ActivationTimes, CardiacError> {
        self.times_by(&|times| Ok(times.to_host()?))
    }

    /// Returns the times, each array as `by` brings it to the host.
    pub(crate) fn times_by(&self, by: &ToHost<'_, D>) -> Result<ActivationTimes, CardiacError> {
        let ActivationState { first, last, repolarisation, duration, .. } = &self.state;
        let (first, last) = (by(first)?, by(last)?);
        Ok(ActivationTimes { first, last, repolarisation: by(repolarisation)?, duration: by(duration)? })
    }
}
