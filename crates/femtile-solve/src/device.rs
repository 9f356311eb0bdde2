//! The device of a solve, and the reason for it.

use femtile_device::cuda::{Opening, gpus};
use femtile_device::{Cpu, Cuda, DeviceError};

use crate::{DeviceChoice, Discretization};

/// Unknowns from which a GPU is worth starting, at least and for each thread of the processor: below, the processor
/// is done before a GPU is ready.
///
/// Opening a GPU takes some 0.3 s; measured with 16 threads beside an H200, both were equal at 400,000 unknowns.
const WORTH_A_GPU: usize = 100_000;
const WORTH_A_GPU_A_THREAD: usize = 25_000;
/// Steps in time that take a processor as long as one steady solve, from the unknowns on with which a step of a GPU, 0.1 ms
/// at least, is shorter than one of 16 threads: measured for heat and hearts beside an H200.
const STEPS_OF_A_SOLVE: usize = 25;
const LEAST_FOR_STEPS: usize = 5_000;

/// Returns the number of unknowns from which a GPU is faster than a CPU with `n_threads` threads, its start
/// included.
pub(crate) fn worth_a_gpu(n_threads: usize) -> usize {
    WORTH_A_GPU.max(WORTH_A_GPU_A_THREAD * n_threads)
}

/// A device that is open.
#[derive(Debug)]
pub enum Chosen {
    /// The processor.
    Cpu,
    /// A GPU.
    Cuda(Cuda),
}

/// A problem with the device that one rank solves it on.
pub(crate) struct ProblemOnDevice<'a, 'm, D> {
    /// The host of the device.
    pub cpu: &'a Cpu,
    pub device: &'a D,
    /// The reason for the device.
    pub reason: &'a str,
    pub problem: &'a Discretization<'m>,
    /// Warnings about the problem and the device.
    pub warnings: &'a [String],
}

/// A device with the reason for it, as the report gives it.
#[derive(Debug)]
pub struct Choice {
    /// The device.
    pub device: Chosen,
    /// The reason.
    pub reason: String,
}

impl DeviceChoice {
    /// Opens a GPU that is insisted on, so that its absence shows before any work.
    ///
    /// # Errors
    /// [`DeviceError::Absent`] and what the driver reports.
    pub fn open(self) -> Result<Option<Cuda>, DeviceError> {
        match self {
            Self::Cuda(ordinal) => Cuda::new(ordinal).map(Some),
            _ => Ok(None),
        }
    }

    /// Begins to open a GPU that is insisted on.
    ///
    /// # Errors
    /// [`DeviceError::Absent`] if there is no driver.
    pub fn begin_opening(self) -> Result<Option<Opening>, DeviceError> {
        match self {
            Self::Cuda(ordinal) => Opening::begin(ordinal).map(Some),
            _ => Ok(None),
        }
    }

    /// The same GPU with an account of its own. Arrays for which it has no room go to the host: all of them
    /// if the GPU is insisted on, else as many bytes as it has itself. With more, a processor is faster.
    ///
    /// Measured with 16 cores beside an H200, for multigrid.
    pub fn with_overflow(self, device: &Cuda) -> Cuda {
        let own = Cuda::with_driver(device.driver().clone());
        own.limit_memory(device.memory_limit());
        own.overflow_to_host(if self == Self::Auto { own.memory_limit() } else { usize::MAX });
        own
    }

    /// Chooses the device for a problem of `n` unknowns; the alternative is a CPU with `n_threads` threads.
    pub fn choose(self, opened: Option<Cuda>, n: usize, n_threads: usize) -> Choice {
        self.choose_for(opened, (n, &format!("{n} unknowns")), n_threads)
    }

    /// Chooses the device for `n_steps` steps in time of a problem of `n` unknowns.
    pub fn choose_for_steps(
        self,
        opened: Option<Cuda>,
        (n, n_steps): (usize, usize),
        n_threads: usize,
    ) -> Choice {
        let of = (of_one_solve(n, n_steps), format!("{n_steps} steps of {n} unknowns"));
        self.choose_for(opened, (of.0, &of.1), n_threads)
    }

    /// Chooses the device for work that takes as long as one solve of `n` unknowns.
    fn choose_for(self, opened: Option<Cuda>, (n, work): (usize, &str), n_threads: usize) -> Choice {
        let cpu = |reason: String| Choice { device: Chosen::Cpu, reason };
        if let Some(device) = opened {
            return Choice { device: Chosen::Cuda(device), reason: "asked for".into() };
        }
        if self == Self::Cpu {
            return cpu("asked for".into());
        }
        let worth_a_gpu = worth_a_gpu(n_threads);
        if n < worth_a_gpu {
            return cpu(format!(
                "{work} are solved before a GPU is ready; it is faster from about {worth_a_gpu} unknowns on"
            ));
        }
        match gpus().and_then(|_| Cuda::new(0)) {
            Ok(device) => {
                let reason = format!("{work} gain from a GPU");
                Choice { device: Chosen::Cuda(device), reason }
            }
            Err(DeviceError::Absent { reason, .. }) => cpu(format!("no GPU: {reason}")),
            Err(error) => cpu(error.to_string()),
        }
    }
}

/// Returns the unknowns of a steady problem whose solve takes a processor as long as `n_steps` steps in time.
fn of_one_solve(n: usize, n_steps: usize) -> usize {
    if n < LEAST_FOR_STEPS { n } else { n.saturating_mul((n_steps / STEPS_OF_A_SOLVE).max(1)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_steps_count_as_solves_and_small_problems_do_not() {
        assert_eq!(of_one_solve(50_000, 24), 50_000);
        assert_eq!(of_one_solve(50_000, 250), 500_000);
        assert_eq!(of_one_solve(4_000, 1_000_000), 4_000);
        assert_eq!(of_one_solve(usize::MAX, 100), usize::MAX);
        let reason = DeviceChoice::Auto.choose_for_steps(None, (4_000, 100), 2).reason;
        assert!(reason.starts_with("100 steps of 4000 unknowns are solved before"), "{reason}");
    }
}
