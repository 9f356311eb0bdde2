//! NVIDIA GPUs: memory, kernels compiled at run time, recordings.
//!
//! Nothing of CUDA is needed to build. The driver and the compiler NVRTC are opened at run time, and their
//! absence is a value with advice. All device work goes through a [`Driver`], which the NVIDIA driver and the
//! host emulator of `femtile-conformance` both are, so that host code of kernels runs on every machine.
//!
//! CUDA 12.0 or later is required. A device has one stream. Allocations are freed in stream order, so a buffer may
//! be dropped while queued kernels use it. A recording that refers to that buffer is then recorded again.

mod binaries;
mod borrowed;
mod cache;
mod compiler;
mod driver;
mod fault;
mod kernel;
mod locate;
mod measure;
mod memory;
mod nvidia;
mod nvrtc;
mod opening;
mod pinned;
mod pool;
mod program;
mod recording;
mod refusal;
mod sharing;
mod staging;
mod start;
mod trace;
mod workers;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Device, DeviceError, Element, MemorySpace, MemoryUse};
pub use borrowed::Borrowed;
pub use cache::{CacheReport, Warmed, clear_cache, report_cache, warm_cache};
pub use compiler::{Binary, Compiler, Resources};
pub use driver::{Driver, Event, Function, Graph, Launch, PendingCopy, Properties};
use fault::Recent;
pub use kernel::{Argument, Arguments, CheckDevice, Kernel, Read, Structure, TakeBytes, Write};
pub use locate::search_python;
pub use measure::{CudaCosts, measure, specialisations};
pub use memory::CudaMemory;
use memory::MemoryBudget;
pub use nvidia::{Nvidia, gpus};
use opening::Announced;
pub use opening::Opening;
pub use program::{
    COPY_HEADER, FEMTILE_HEADER, Header, LANES_HEADER, MMA_HEADER, Program, RECIPROCAL_HEADER, STREAM_HEADER,
    STRIDED_HEADER, Specialisation, TABLE_HEADER, TILE_HEADER,
};
use recording::Recordings;
pub use recording::{CudaReadback, CudaRecording, Unrecorded};
pub use sharing::{KeptContext, gpu_of};
pub use trace::{CudaTrace, TracedKind, TracedWork};
use workers::Workers;
pub use workers::{serve_compiler, set_compile_command};

/// One NVIDIA GPU with one stream of work; clones are handles of the same stream.
///
/// All work runs in the order of the calls. Calls return before the work is done, except copies to the host.
#[derive(Clone)]
pub struct Cuda {
    inner: Arc<Inner>,
}

struct Inner {
    id: u64,
    driver: Arc<dyn Driver>,
    functions: Mutex<HashMap<(String, &'static str), Function>>,
    n_launches: AtomicU64,
    recordings: Recordings,
    recent: Mutex<Recent>,
    budget: MemoryBudget,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

impl Cuda {
    /// Opens the GPU with this number, counted from 0.
    ///
    /// # Errors
    /// [`DeviceError::Absent`] with a remedy if there is no such GPU, no driver, or no NVRTC.
    pub fn new(ordinal: usize) -> Result<Self, DeviceError> {
        Self::opened(ordinal, &Announced::default())
    }

    /// As [`Cuda::new`], while announced programs are compiled.
    fn opened(ordinal: usize, announced: &Announced) -> Result<Self, DeviceError> {
        let allowed = memory::allowed()
            .map_err(|reason| DeviceError::Absent { requested: format!("cuda:{ordinal}"), reason })?;
        let device = Self::with_driver(trace::traced(Arc::new(Nvidia::open_with(ordinal, announced)?)));
        if let Some(allowed) = allowed {
            device.limit_memory(allowed);
        }
        Ok(device)
    }

    /// Returns a device that runs on a given driver.
    pub fn with_driver(driver: Arc<dyn Driver>) -> Self {
        let inner = Inner {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            driver,
            functions: Mutex::default(),
            n_launches: AtomicU64::new(0),
            recordings: Recordings::default(),
            recent: Mutex::default(),
            budget: MemoryBudget::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the driver.
    pub fn driver(&self) -> &Arc<dyn Driver> {
        &self.inner.driver
    }

    /// Begins to compile programs that will probably be needed, in the background.
    pub fn prepare(&self, programs: Vec<Specialisation>) {
        self.driver().prepare(programs);
    }

    /// Returns the properties of the GPU.
    pub fn properties(&self) -> &Properties {
        self.inner.driver.properties()
    }

    /// Limits the bytes of GPU memory that arrays may take.
    pub fn limit_memory(&self, bytes: usize) {
        self.inner.budget.limit_to(bytes);
    }

    /// Returns the bytes of GPU memory that arrays may use: their own and the free bytes, or less if
    /// `FEMTILE_CUDA_MEMORY` or [`Cuda::limit_memory`] say so.
    pub fn memory_limit(&self) -> usize {
        let free = self.driver().memory_bytes().map_or(usize::MAX, |(free, _)| free);
        self.inner.budget.limit_with(free)
    }

    /// Allows arrays that do not fit in GPU memory to go to host memory, which kernels access through the bus, far more
    /// slowly: up to `most` bytes and three quarters of the host memory available now. On the GPU, arrays are limited to the
    /// present [`Cuda::memory_limit`], so that other processes keep their memory.
    pub fn overflow_to_host(&self, most: usize) {
        self.limit_memory(self.memory_limit());
        self.inner.budget.overflow(most.min(memory::sensible_on_host()));
    }

    fn budget(&self) -> &MemoryBudget {
        &self.inner.budget
    }

    /// Returns the number of this device, unique in the process; clones have the same.
    pub fn id(&self) -> u64 {
        self.inner.id
    }

    /// Waits for all work queued so far.
    ///
    /// # Errors
    /// [`DeviceError::Fault`] when a kernel failed.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.settled(self.inner.driver.synchronize())
    }

    /// Returns the seconds that the device takes for the work that `work` queues.
    pub fn time<E: From<DeviceError>>(&self, work: impl FnOnce() -> Result<(), E>) -> Result<f64, E> {
        let first = self.inner.driver.record_event()?;
        work()?;
        let second = self.inner.driver.record_event()?;
        // SAFETY: both events are those recorded above.
        let seconds = unsafe { self.inner.driver.seconds_between(first, second) };
        Ok(self.settled(seconds)?)
    }

    fn function(
        &self,
        program: &Specialisation,
        name: &'static str,
        signature: fn() -> Vec<String>,
    ) -> Result<Function, DeviceError> {
        let key = (program.key(), name);
        let mut functions = self.inner.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&function) = functions.get(&key) {
            return Ok(function);
        }
        let function = self.inner.driver.function(program, name, &signature())?;
        functions.insert(key, function);
        Ok(function)
    }

    fn recordings(&self) -> &Recordings {
        &self.inner.recordings
    }

    fn count_launch(&self, name: &'static str, arguments: &[&[u8]]) {
        if self.inner.recordings.note(name, arguments) {
            return;
        }
        self.inner.n_launches.fetch_add(1, Ordering::Relaxed);
        self.inner.recent.lock().unwrap_or_else(PoisonError::into_inner).push(name);
    }

    /// Names the kernels that may be to blame when waiting for the stream has failed.
    fn settled<R>(&self, result: Result<R, DeviceError>) -> Result<R, DeviceError> {
        let mut recent = self.inner.recent.lock().unwrap_or_else(PoisonError::into_inner);
        result.inspect(|_| recent.clear()).map_err(|error| recent.blame(error))
    }
}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.description())
    }
}

impl fmt::Display for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{}", self.properties().ordinal)
    }
}

impl Device for Cuda {
    type Memory<T: Element> = CudaMemory;
    type Recording = CudaRecording;
    type Readback = CudaReadback;

    fn description(&self) -> String {
        format!("{self} ({})", self.properties().name)
    }

    fn allocate<T: Element>(&self, len: usize) -> Result<CudaMemory, DeviceError> {
        let memory = CudaMemory::new(self, len.saturating_mul(size_of::<T>()))?;
        memory.zero()?;
        Ok(memory)
    }

    fn adopt<T: Element>(&self, host: Vec<T>) -> Result<CudaMemory, DeviceError> {
        let mut memory = CudaMemory::new(self, size_of_val(host.as_slice()))?;
        self.upload(&mut memory, &host)?;
        Ok(memory)
    }

    fn upload<T: Element>(&self, memory: &mut CudaMemory, host: &[T]) -> Result<(), DeviceError> {
        memory.upload(self, bytemuck::cast_slice(host))
    }

    fn download<T: Element>(&self, host: &mut [T], memory: &CudaMemory) -> Result<(), DeviceError> {
        self.settled(memory.download(self, bytemuck::cast_slice_mut(host)))
    }

    fn address<T: Element>(memory: &CudaMemory) -> u64 {
        memory.address()
    }

    fn begin_read<T: Element>(&self, memory: &CudaMemory, len: usize) -> Result<CudaReadback, DeviceError> {
        CudaReadback::begin(self, memory, len.saturating_mul(size_of::<T>()))
    }

    fn end_read<T: Element>(&self, readback: CudaReadback) -> Result<Vec<T>, DeviceError> {
        let bytes = self.settled(readback.end())?;
        Ok(crate::buffer::values_of(&bytes))
    }

    fn repeat<E: From<DeviceError>>(
        &self,
        recording: &mut CudaRecording,
        times: usize,
        work: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        recording.repeat(self, times, work)
    }

    fn available_bytes(&self) -> Option<usize> {
        self.inner.budget.free()
    }

    fn with_reserved_bytes<R>(&self, bytes: usize, work: impl FnOnce() -> R) -> R {
        let bytes = bytes.min(isize::MAX as usize) as isize;
        self.inner.budget.leave(bytes);
        let done = work();
        self.inner.budget.leave(-bytes);
        done
    }

    fn relocate<T: Element>(&self, memory: &mut CudaMemory, place: MemorySpace) -> Result<bool, DeviceError> {
        memory.relocate(place)
    }

    fn memory_use(&self) -> Option<MemoryUse> {
        Some(self.inner.budget.used())
    }

    fn kernel_launches(&self) -> u64 {
        self.inner.n_launches.load(Ordering::Relaxed)
    }
}

/// Returns the name of the kernel compiler of this machine, or the reason why there is none, with a remedy.
pub fn compiler() -> Result<String, String> {
    nvrtc::Nvrtc::get().map(|nvrtc| nvrtc.description())
}

/// Returns the kernel compiler of this machine.
///
/// # Errors
/// [`DeviceError::Compile`] saying how to install it.
pub fn nvrtc() -> Result<Arc<dyn Compiler>, DeviceError> {
    match nvrtc::Nvrtc::get() {
        Ok(compiler) => Ok(compiler),
        Err(message) => Err(DeviceError::Compile { program: "any program".into(), message }),
    }
}
