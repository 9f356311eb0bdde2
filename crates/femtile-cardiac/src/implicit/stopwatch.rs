//! Seconds of the parts of implicit steps.

use std::time::Instant;

use femtile::device::{Buffer, Device};

use crate::CardiacError;

/// Seconds that implicit steps have taken, by part; rejected steps are included.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct StepSeconds {
    /// The local Newton iterations of the states.
    pub membrane: f64,
    /// The sparse products that interpolate the potential and assemble residual and tangent.
    pub assembly_products: f64,
    /// The rest of the assembly: combining the values of the tangent, the vectors of the residual and its norm.
    pub assembly_rest: f64,
    /// The linear solver.
    pub solver: f64,
}

impl StepSeconds {
    /// Returns the seconds of the assembly in the sense of `[wong2015]`, Table 1: local iterations, sums and combinations.
    pub fn assembly(&self) -> f64 {
        self.membrane + self.assembly_products + self.assembly_rest
    }
}

/// A part of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Membrane,
    AssemblyProducts,
    AssemblyRest,
    Solver,
    Other,
}

/// Attributes the time since the last lap to a part; does nothing if it stands.
#[derive(Debug)]
pub(super) struct Stopwatch<D: Device>(Option<Running<D>>);

#[derive(Debug)]
struct Running<D: Device> {
    /// A number whose copy to the host waits for all work of the device.
    last_in_queue: Buffer<f64, D>,
    since: Instant,
    seconds: StepSeconds,
}

impl<D: Device> Stopwatch<D> {
    /// A stopwatch that runs from zero, or stands.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn new(device: &D, runs: bool) -> Result<Self, CardiacError> {
        if !runs {
            return Ok(Self(None));
        }
        let (last_in_queue, seconds) = (Buffer::zeros(device, 1)?, StepSeconds::default());
        Ok(Self(Some(Running { last_in_queue, since: Instant::now(), seconds })))
    }

    /// Ends a lap; waits for the device.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn lap(&mut self, part: Part) -> Result<(), CardiacError> {
        let Some(Running { last_in_queue, since, seconds }) = &mut self.0 else { return Ok(()) };
        last_in_queue.to_host()?;
        let now = Instant::now();
        let elapsed = now.duration_since(std::mem::replace(since, now)).as_secs_f64();
        match part {
            Part::Membrane => seconds.membrane += elapsed,
            Part::AssemblyProducts => seconds.assembly_products += elapsed,
            Part::AssemblyRest => seconds.assembly_rest += elapsed,
            Part::Solver => seconds.solver += elapsed,
            Part::Other => {}
        }
        Ok(())
    }

    /// Returns the seconds since the start; none if it stands.
    pub fn seconds(&self) -> Option<StepSeconds> {
        self.0.as_ref().map(|running| running.seconds)
    }
}
