//! Measures a GPU: copy bandwidth, cost of a launch, cost of a node of a recording.

use std::time::Instant;

use super::{Cuda, Kernel, Launch, Program, Read, Specialisation, Write};
use crate::{Buffer, Device, DeviceError};

static PROBE: Program = Program { name: "probe", source: include_str!("probe.cu"), headers: &[] };
const COPY: Kernel<(Write<f64>, Read<f64>, u64)> = Kernel::new("probe_copy");
const NOTHING: Kernel<(u64,)> = Kernel::new("probe_nothing");

/// Kernels launched one after another to time one of them.
const N_LAUNCHES: usize = 200;
/// Largest array that is copied: four times the second-level cache, and never more than this.
const MOST_BYTES: usize = 1 << 30;

/// Measured speed of a GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CudaCosts {
    /// Bytes read and written in a second by a plain copy kernel.
    pub copy_bytes_per_second: f64,
    /// Seconds from one launch to the next of an empty kernel.
    pub launch_seconds: f64,
    /// Seconds from one node to the next of a recording of empty kernels.
    pub node_seconds: f64,
}

fn program() -> Specialisation {
    PROBE.of::<f64>()
}

/// The programs that this crate ships, for checks that compile all of them.
pub fn specialisations() -> Vec<Specialisation> {
    vec![program()]
}

/// Measures a GPU in some milliseconds.
///
/// # Errors
/// Errors of allocating, compiling and launching.
pub fn measure(device: &Cuda) -> Result<CudaCosts, DeviceError> {
    let bytes = (4 * device.properties().l2_bytes).clamp(1 << 20, MOST_BYTES);
    let n = bytes / size_of::<f64>();
    let from = Buffer::<f64, Cuda>::zeros(device, n)?;
    let mut to = Buffer::<f64, Cuda>::zeros(device, n)?;
    let mut copy_seconds = f64::INFINITY;
    for _ in 0..5 {
        let seconds = device.time(|| {
            let arguments = (to.write(), from.read(), n as u64);
            // SAFETY: the kernel copies n values between two arrays of n.
            unsafe { device.launch(&program(), &COPY, Launch::over(n / 2, 256), arguments) }
        })?;
        copy_seconds = copy_seconds.min(seconds);
    }
    // SAFETY: the kernel touches nothing.
    let empty = || unsafe { device.launch(&program(), &NOTHING, Launch::line(1, 32), (0,)) };
    empty()?;
    device.synchronize()?;
    let begun = Instant::now();
    (0..N_LAUNCHES).try_for_each(|_| empty())?;
    device.synchronize()?;
    let launch_seconds = begun.elapsed().as_secs_f64() / N_LAUNCHES as f64;
    let mut recording = Default::default();
    let mut node_seconds = f64::INFINITY;
    for _ in 0..4 {
        let seconds = device.time(|| device.repeat(&mut recording, N_LAUNCHES, &mut || empty()))?;
        node_seconds = node_seconds.min(seconds / N_LAUNCHES as f64);
    }
    Ok(CudaCosts { copy_bytes_per_second: 2.0 * bytes as f64 / copy_seconds, launch_seconds, node_seconds })
}
