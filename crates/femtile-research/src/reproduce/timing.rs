use femtile::device::{Cpu, Cuda, Device};
use femtile::linalg::LinalgError;

use femtile_bench::Samples;

/// A device whose work can be timed: by the host's clock, or by events of a GPU.
pub(super) trait Timed: Device {
    /// Name in rows.
    const KIND: &'static str;

    /// Returns the seconds of queued work.
    fn seconds(&self, work: &mut dyn FnMut() -> Result<(), LinalgError>) -> Result<f64, LinalgError>;
}

impl Timed for Cpu {
    const KIND: &'static str = "cpu";

    fn seconds(&self, work: &mut dyn FnMut() -> Result<(), LinalgError>) -> Result<f64, LinalgError> {
        let mut samples = Samples::default();
        samples.time(work)?;
        Ok(samples.min())
    }
}

impl Timed for Cuda {
    const KIND: &'static str = "cuda";

    fn seconds(&self, work: &mut dyn FnMut() -> Result<(), LinalgError>) -> Result<f64, LinalgError> {
        self.time(work)
    }
}

/// The fastest of several runs; one before them is not counted.
pub(super) fn fastest<D: Timed>(
    device: &D,
    repeats: usize,
    mut work: impl FnMut() -> Result<(), LinalgError>,
) -> Result<f64, LinalgError> {
    work()?;
    let mut best = f64::INFINITY;
    for _ in 0..repeats.max(1) {
        best = best.min(device.seconds(&mut work)?);
    }
    Ok(best)
}
