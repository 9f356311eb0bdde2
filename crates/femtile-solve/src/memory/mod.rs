//! Memory that a run takes, estimated from counts before anything is allocated, and the limit on it.
//!
//! Counts are those of the generator before it allocates (`generate::Counts`), or those of the mesh that was read.
//! A run that exceeds `solver.memory_limit`, the machine or its control group is refused with figures, since Linux
//! would kill it. The constants are fitted to measured peaks (`docs/case-files.md`), and a test compares them with
//! runs.

mod estimate;

use femtile_device::cuda::gpus;
use femtile_device::host_memory_bytes;

use crate::setting::Key;
use crate::{DeviceChoice, SolveError};
pub use estimate::{Estimate, amount};

/// Returns the peak memory of this process in bytes; none if the system does not report it.
pub fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

/// Returns the limit in bytes and its source; none if nothing limits.
fn limit(asked: Option<u64>) -> Option<(f64, &'static str)> {
    match asked {
        Some(bytes) => Some((bytes as f64, "solver.memory_limit")),
        None => host_memory_bytes().map(|bytes| (bytes as f64, "this machine or its control group")),
    }
}

/// Returns a message if an estimate exceeds the limit, which is that of the machine if `asked` is none.
pub fn excess(estimate: &Estimate, asked: Option<u64>, advice: &str) -> Option<String> {
    let (limit, whose) = limit(asked).filter(|(limit, _)| estimate.total() > *limit)?;
    Some(format!(
        "about {} of memory would be needed ({estimate}), and the limit of {whose} is {}: {advice}",
        amount(estimate.total()),
        amount(limit)
    ))
}

/// Refuses an estimate that exceeds the limit of the host, or that of the GPU if there is one.
///
/// # Errors
/// [`SolveError::Setting`] at `path` with the figures.
pub fn refuse_excess(
    estimate: impl Fn(bool) -> Estimate,
    asked: Option<u64>,
    (device, has_gpu): (DeviceChoice, bool),
    (path, advice): (&[Key], &str),
) -> Result<(), SolveError> {
    let Some(mut message) = excess(&estimate(false), asked, advice) else { return Ok(()) };
    if has_gpu || device == DeviceChoice::Auto && gpus().is_ok() {
        match excess(&estimate(true), asked, advice) {
            Some(beside_gpu) => message = beside_gpu,
            None => return Ok(()),
        }
    }
    Err(SolveError::setting(path, message))
}
