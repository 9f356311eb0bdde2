use std::time::Instant;

use femtile::device::{Cpu, Cuda, Device};
use femtile::linalg::LinalgError;

use crate::BenchError;
use crate::timing::Samples;

/// Untimed runs before the timed ones.
const WARM_UP: usize = 3;
/// Launches per timed run on a GPU, which hides the launch latency.
const IN_A_ROW: usize = 20;
/// Least total time of the timed runs on a CPU, in seconds.
const LEAST_SECONDS: f64 = 0.05;

/// A device that times its own work.
pub trait Stopwatch: Device {
    /// Times `work` at least `repeats` times; each sample is the seconds of one call.
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
        while samples.count() < repeats || begun.elapsed().as_secs_f64() < LEAST_SECONDS {
            samples.time(&mut *work)?;
        }
        Ok(samples)
    }
}
