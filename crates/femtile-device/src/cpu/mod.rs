//! The CPU: a pool of threads and the widest SIMD instructions found at run time.
//!
//! SIMD code is written in one of these ways:
//!
//! | way | when |
//! |---|---|
//! | [`Cpu::vectorize`] | plain loops over slices, which the compiler vectorizes at each SIMD level |
//! | [`Wide`] | arithmetic on vectors of any width, generic over the SIMD level through pulp |
//! | [`vector::Vector`] | what pulp lacks: transposes of squares, stores past the cache, pivot masks |

mod arithmetic;
mod array;
mod bandwidth;
mod memory;
pub mod parallel;
mod parts;
mod simd;
mod team;
pub mod vector;
mod vectorize;
mod wide;
mod workers;

use std::sync::{Arc, OnceLock};

use crate::host_memory_device::HostMemoryDevice;
use crate::{DeviceError, Element};
pub use array::{Borrowed, BorrowedMut, HostArray};
pub use bandwidth::Bandwidth;
pub use memory::{Aligned, LargePages, try_zeroed_vec, zeroed_vec};
pub use parts::{SharedMut, Source};
pub use simd::SimdLevel;
pub use wide::Wide;
use workers::Workers;

/// Limits on the number of threads, per core and on machines with few cores: with thousands a solve would not end.
const MAX_THREADS_PER_CORE: usize = 4;
const MAX_THREADS_ANYWHERE: usize = 256;

/// The environment variables that set the default number of threads.
const VARIABLES: [&str; 2] = ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"];

/// The host processor with its own pool of threads.
///
/// A whole solve runs inside [`Cpu::install`]: entering the pool once is cheap, entering it for
/// every vector operation is not. In a child that was made by `fork` a device of the parent starts new threads.
#[derive(Clone)]
pub struct Cpu {
    inner: Arc<Inner>,
}

struct Inner {
    workers: Workers,
    simd: SimdLevel,
}

impl std::fmt::Debug for Cpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.describe())
    }
}

impl Cpu {
    /// A CPU device with `threads` workers (0 = one per available core). The SIMD level is that of
    /// `FEMTILE_SIMD` or, if it is unset, the best of the processor.
    pub fn new(threads: usize) -> Result<Self, DeviceError> {
        Self::with_simd(threads, SimdLevel::from_environment()?)
    }

    /// A CPU device with the number of threads of the current pool: within [`Cpu::install`] of a rank, that
    /// of the rank.
    ///
    /// # Errors
    /// As [`Cpu::new`].
    pub fn of_current_pool() -> Result<Self, DeviceError> {
        Self::new(rayon::current_num_threads())
    }

    /// A CPU device with a given SIMD level.
    ///
    /// # Errors
    /// [`DeviceError::SimdUnavailable`] when the processor lacks that level; [`DeviceError::Threads`] when there are too
    /// many.
    pub fn with_simd(threads: usize, simd: SimdLevel) -> Result<Self, DeviceError> {
        simd.require()?;
        let threads = match threads {
            0 => default_threads()?,
            _ => within_limit(threads, "")?,
        };
        Ok(Self { inner: Arc::new(Inner { workers: Workers::start(threads)?, simd }) })
    }

    /// Number of worker threads.
    pub fn threads(&self) -> usize {
        self.inner.workers.threads()
    }

    /// The SIMD instructions that kernels use.
    pub fn simd(&self) -> SimdLevel {
        self.inner.simd
    }

    /// Runs `work` inside the pool; a nested call runs on the current thread.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        let (mut work, mut result) = (Some(work), None);
        self.install_once(&mut || result = work.take().map(|work| work()));
        result.expect("the pool runs what it is given")
    }

    /// [`Cpu::install`] without types, so that rayon's part is compiled once.
    fn install_once(&self, work: &mut (dyn FnMut() + Send)) {
        self.inner.workers.install(work);
    }
}

/// Returns the default number of threads: that of `RAYON_NUM_THREADS`, or one for each available core.
///
/// # Errors
/// [`DeviceError::Threads`] when the variable asks for too many.
pub fn default_threads() -> Result<usize, DeviceError> {
    for name in VARIABLES {
        let asked = std::env::var(name).ok().and_then(|value| value.parse().ok()).filter(|n| *n > 0);
        if let Some(threads) = asked {
            return within_limit(threads, &format!("{name} asks for them, but "));
        }
    }
    Ok(n_cores())
}

/// Starts the global thread pool, which serves parallel work outside [`Cpu::install`]. Without this call it
/// starts at its first use, and a refusal by the system is a panic.
///
/// # Errors
/// [`DeviceError::Threads`] if the system refuses a thread.
pub fn start_shared_threads() -> Result<(), DeviceError> {
    static STARTED: OnceLock<Result<(), DeviceError>> = OnceLock::new();
    let start = || {
        let threads = default_threads()?;
        let built = rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
        built.map_err(|error| DeviceError::Threads { threads, reason: error.to_string() })
    };
    STARTED.get_or_init(start).clone()
}

fn n_cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Refuses more threads than this machine supports; `who` begins the reason.
fn within_limit(threads: usize, who: &str) -> Result<usize, DeviceError> {
    let cores = n_cores();
    let most = (MAX_THREADS_PER_CORE * cores).max(MAX_THREADS_ANYWHERE);
    if threads <= most {
        return Ok(threads);
    }
    let reason =
        format!("{who}this machine has {cores} cores, on which at most {most} threads are supported");
    Err(DeviceError::Threads { threads, reason })
}

impl HostMemoryDevice for Cpu {
    fn describe(&self) -> String {
        format!("cpu ({} threads, {})", self.threads(), self.simd())
    }

    fn zeros<T: Element>(len: usize) -> Vec<T> {
        zeroed_vec(len)
    }
}
