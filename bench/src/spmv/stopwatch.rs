use std::time::Instant;

use femtile::device::{Cpu, Cuda, Device};
use femtile::linalg::LinalgError;

use crate::BenchError;
use crate::timing::Samples;

/// Runs that go unmeasured at first.
const WARM_UP: usize = 3;
/// Launches that are timed as one on a GPU, so that the time between them is not.
const IN_A_ROW: usize = 20;
/// A CPU is timed for at least so long.
const LEAST_SECONDS: f64 = 0.05;

/// A device whose work can be timed.
pub trait Stopwatch: Device {
    /// Seconds of one call of `work`, several times.
    ///
    /// # Errors
    /// Errors of `work` and of the device.
    fn time_repeated(
        &self,
        repeats: usize,
        work: &mut dyn FnMut() -> Result<(), LinalgError>,
    ) -> Result<Samples, BenchError>;
}

impl Stopwatch for Cuda {
    fn time_repeated(
        &self,
        repeats: usize,
        work: &mut dyn FnMut() -> Result<(), LinalgError>,
    ) -> Result<Samples, BenchError> {
        let mut samples = Samples::default();
        (0..WARM_UP).try_for_each(|_| work())?;
        for _ in 0..repeats {
            let seconds = self.time(|| (0..IN_A_ROW).try_for_each(|_| work()))?;
            samples.push(seconds / IN_A_ROW as f64);
        }
        Ok(samples)
    }
}

impl Stopwatch for Cpu {
    fn time_repeated(
        &self,
        repeats: usize,
        work: &mut dyn FnMut() -> Result<(), LinalgError>,
    ) -> Result<Samples, BenchError> {
        let mut samples = Samples::default();
        (0..WARM_UP).try_for_each(|_| work())?;
        let begun = Instant::now();
        while samples.n_runs() < repeats || begun.elapsed().as_secs_f64() < LEAST_SECONDS {
            samples.time(&mut *work)?;
        }
        Ok(samples)
    }
}
