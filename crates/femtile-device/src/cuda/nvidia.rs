//! The NVIDIA driver, reached through cudarc.

use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::result::{self, DriverError as Refusal};
use cudarc::driver::sys;

use super::binaries::Binaries;
use super::compiler::Compiler;
use super::driver::{Driver, Event, Function, Graph, Launch, PendingCopy, Properties};
use super::nvrtc::Nvrtc;
use super::opening::Announced;
use super::pinned::Pinned;
use super::refusal::{failed, words};
use super::staging::Staging;
use super::start::start;
use super::{Specialisation, Workers, pool, sharing};
use crate::DeviceError;

/// When set, every launch is waited for, so that a fault names its kernel.
const BLOCKING_VARIABLE: &str = "FEMTILE_CUDA_BLOCKING";

/// One GPU through the NVIDIA driver.
pub struct Nvidia {
    properties: Properties,
    context: sys::CUcontext,
    stream: sys::CUstream,
    has_pool: bool,
    is_blocking: bool,
    compiler: Arc<Nvrtc>,
    binaries: Arc<Binaries>,
    modules: Mutex<HashMap<String, Module>>,
    /// Names of kernels, for errors.
    names: Mutex<HashMap<u64, &'static str>>,
    staging: Mutex<Staging>,
    /// Memory of the host that was given out, by its address.
    pinned: Mutex<HashMap<u64, Pinned>>,
}

/// A loaded program; it stays loaded as long as the process.
#[derive(Clone, Copy)]
struct Module(sys::CUmodule);

// SAFETY: handles of the driver may be used from any thread once its context is current there, which every
// method sees to; what is behind them is locked by the driver.
unsafe impl Send for Module {}
// SAFETY: as above; the fields that change are behind mutexes.
unsafe impl Send for Nvidia {}
// SAFETY: as above.
unsafe impl Sync for Nvidia {}

/// Returns the error that a device is not available, with a remedy.
pub(super) fn absent(ordinal: usize, reason: impl Into<String>) -> DeviceError {
    DeviceError::Absent { requested: format!("cuda:{ordinal}"), reason: reason.into() }
}

fn properties_of(ordinal: usize, version: c_int) -> Result<Properties, Refusal> {
    use sys::CUdevice_attribute_enum as A;
    let device = result::device::get(ordinal as c_int)?;
    // SAFETY: the device handle was just given out by the driver.
    let attribute = |which| unsafe { result::device::get_attribute(device, which) };
    let number = |which| attribute(which).map(|value| usize::try_from(value).unwrap_or(0));
    Ok(Properties {
        name: result::device::get_name(device)?,
        ordinal,
        compute_capability: (
            number(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? as u32,
            number(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)? as u32,
        ),
        n_multiprocessors: number(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        // SAFETY: as above.
        memory_bytes: unsafe { result::device::total_mem(device)? },
        l2_bytes: number(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
        cuda_version: ((version / 1000) as u32, (version % 1000 / 10) as u32),
    })
}

/// Returns the GPUs of this machine, or the reason why there are none, with a remedy.
pub fn gpus() -> Result<Vec<Properties>, DeviceError> {
    let (count, version) = start().map_err(|reason| absent(0, reason))?;
    if count == 0 {
        return Err(absent(0, "the NVIDIA driver sees no GPU; solve with `cpu`"));
    }
    (0..count).map(|i| properties_of(i, version).map_err(|refusal| absent(i, words(refusal)))).collect()
}

impl std::fmt::Debug for Nvidia {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Nvidia({:?})", self.properties)
    }
}

impl Nvidia {
    /// Opens a GPU with a stream of its own.
    ///
    /// # Errors
    /// [`DeviceError::Absent`] if there is no driver, no such GPU or no compiler.
    pub fn open(ordinal: usize) -> Result<Self, DeviceError> {
        Self::open_with(ordinal, &Announced::default())
    }

    /// As [`Nvidia::open`], while announced programs are compiled.
    pub(super) fn open_with(ordinal: usize, announced: &Announced) -> Result<Self, DeviceError> {
        let (count, version) = start().map_err(|reason| absent(ordinal, reason))?;
        if ordinal >= count {
            return Err(absent(ordinal, format!("this machine has {count} GPU(s), counted from cuda:0")));
        }
        let compiler = Nvrtc::get().map_err(|reason| absent(ordinal, reason))?;
        let refused = |refusal| absent(ordinal, words(refusal));
        let properties = properties_of(ordinal, version).map_err(refused)?;
        let workers = Arc::new(Workers::new(compiler.clone()));
        let binaries = Arc::new(Binaries::new(workers, properties.compute_capability));
        announced.serve(&binaries);
        Self::with_binaries(properties, compiler, binaries).map_err(refused)
    }

    fn with_binaries(
        properties: Properties,
        compiler: Arc<Nvrtc>,
        binaries: Arc<Binaries>,
    ) -> Result<Self, Refusal> {
        use sys::CUdevice_attribute_enum as A;
        let ordinal = properties.ordinal;
        let device = result::device::get(ordinal as c_int)?;
        // SAFETY: the device exists; its primary context is kept until the process ends.
        unsafe {
            let context = result::primary_ctx::retain(device)?;
            result::ctx::set_current(context)?;
            let stream = result::stream::create(result::stream::StreamKind::NonBlocking)?;
            let has_pool =
                result::device::get_attribute(device, A::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0;
            if has_pool {
                pool::keep_all(ordinal)?;
            }
            Ok(Self {
                properties,
                context,
                stream,
                has_pool,
                is_blocking: std::env::var_os(BLOCKING_VARIABLE).is_some_and(|value| value != "0"),
                compiler,
                binaries,
                modules: Mutex::default(),
                names: Mutex::default(),
                staging: Mutex::default(),
                pinned: Mutex::default(),
            })
        }
    }

    /// Makes the context current in this thread, which every call of the driver needs.
    fn enter(&self) -> Result<(), DeviceError> {
        // SAFETY: the context lives as long as the process.
        unsafe { result::ctx::set_current(self.context) }
            .map_err(|refusal| failed("entering the GPU", refusal))
    }

    fn staging(&self) -> MutexGuard<'_, Staging> {
        self.staging.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pinned(&self) -> MutexGuard<'_, HashMap<u64, Pinned>> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn load(&self, program: &Specialisation) -> Result<Module, DeviceError> {
        let key = program.key();
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&module) = modules.get(&key) {
            return Ok(module);
        }
        let binary = self.binaries.take(program)?;
        // SAFETY: the image is a whole CUBIN, which says its own size.
        let loaded = unsafe { result::module::load_data(binary.code.as_ptr().cast()) };
        let module = loaded.map(Module).map_err(|refusal| self.not_loaded(program, refusal))?;
        modules.insert(key, module);
        Ok(module)
    }

    fn not_loaded(&self, program: &Specialisation, refusal: Refusal) -> DeviceError {
        let (major, minor) = self.properties.cuda_version;
        let message = format!(
            "the driver, which knows CUDA {major}.{minor}, does not take what {} makes: {}; update the driver or \
             install an older NVRTC",
            self.compiler.version(),
            words(refusal)
        );
        DeviceError::Compile { program: program.to_string(), message }
    }
}

/// Lets a kernel use all shared memory that a block may have, where the driver's limit is 48 KiB. Once and for all
/// launches: ranks that share a GPU share its functions, so a limit set for one launch could be that of another.
///
/// # Safety
/// The function is loaded.
unsafe fn allow_shared_memory(function: sys::CUfunction, bytes: usize) -> Result<(), Refusal> {
    use sys::CUfunction_attribute_enum::{
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as DYNAMIC,
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES as STATIC,
    };
    // SAFETY: the function is loaded.
    unsafe {
        let own = result::function::get_function_attribute(function, STATIC)?;
        result::function::set_function_attribute(function, DYNAMIC, bytes as c_int - own)
    }
}

impl Driver for Nvidia {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn memory_bytes(&self) -> Result<(usize, usize), DeviceError> {
        self.enter()?;
        let kept = || if self.has_pool { pool::kept(self.properties.ordinal) } else { Ok(0) };
        let asked = result::mem_get_info().and_then(|(free, total)| Ok((free + kept()?, total)));
        asked.map_err(|refusal| failed("asking for free memory", refusal))
    }

    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.enter()?;
        // SAFETY: the stream lives as long as this driver; contents are documented as undefined.
        let memory = unsafe {
            if self.has_pool { result::malloc_async(self.stream, bytes) } else { result::malloc_sync(bytes) }
        };
        memory.map_err(|refusal| match refusal.0 {
            sys::cudaError_enum::CUDA_ERROR_OUT_OF_MEMORY => {
                let (free, total) = result::mem_get_info().unwrap_or((0, self.properties.memory_bytes));
                let device = format!("cuda:{} ({})", self.properties.ordinal, self.properties.name);
                DeviceError::OutOfMemory { device, needed: bytes, free, total }
            }
            _ => failed("allocating memory", refusal),
        })
    }

    unsafe fn free(&self, address: u64) {
        if self.enter().is_err() {
            return;
        }
        // SAFETY: the address came from `allocate` and is given back once. After a fault nothing can be given
        // back, and nothing needs to be: the error has been reported where it arose.
        let _ = unsafe {
            if self.has_pool { result::free_async(address, self.stream) } else { result::free_sync(address) }
        };
    }

    fn allocate_on_host(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.enter()?;
        let pinned = Pinned::new(bytes).and_then(|pinned| Ok((pinned.address()?, pinned)));
        let (address, pinned) = pinned.map_err(|refusal| failed("pinning memory of the host", refusal))?;
        self.pinned().insert(address, pinned);
        Ok(address)
    }

    unsafe fn free_on_host(&self, address: u64) {
        // After a fault the driver keeps it until the process ends.
        let waited = self.synchronize();
        if let Some(pinned) = self.pinned().remove(&address)
            && waited.is_err()
        {
            std::mem::forget(pinned);
        }
    }

    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the range is that of an allocation.
        unsafe { result::memset_d8_async(address, 0, bytes, self.stream) }
            .map_err(|refusal| failed("clearing memory", refusal))
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.enter()?;
        self.staging().upload(self.stream, to, from)
    }

    unsafe fn download(&self, to: &mut [u8], from: u64) -> Result<(), DeviceError> {
        self.enter()?;
        self.staging().download(self.stream, to, from)
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: both ranges are those of allocations, on either side.
        unsafe { sys::cuMemcpyAsync(to, from, bytes, self.stream) }
            .result()
            .map_err(|refusal| failed("copying on the GPU", refusal))
    }

    unsafe fn begin_download(&self, from: u64, bytes: usize) -> Result<PendingCopy, DeviceError> {
        self.enter()?;
        self.staging().begin_download(self.stream, from, bytes)
    }

    fn end_download(&self, transfer: PendingCopy) -> Result<Vec<u8>, DeviceError> {
        self.enter()?;
        self.staging().end_download(transfer)
    }

    fn prepare(&self, mut programs: Vec<Specialisation>) {
        {
            let modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
            programs.retain(|program| !modules.contains_key(&program.key()));
        }
        self.binaries.prepare(programs);
    }

    fn warm_up(&self) {
        if self.enter().is_ok() {
            // What fails here fails where it is needed, with an error.
            let _ = self.staging().reserve();
        }
    }

    fn function(
        &self,
        program: &Specialisation,
        name: &'static str,
        _signature: &[String],
    ) -> Result<Function, DeviceError> {
        self.enter()?;
        let module = self.load(program)?;
        let symbol = CString::new(name).unwrap_or_default();
        // SAFETY: the module is loaded for good, and with it the function.
        let function = unsafe {
            result::module::get_function(module.0, symbol).and_then(|function| {
                allow_shared_memory(function, self.properties.shared_bytes_per_block())?;
                Ok(function)
            })
        };
        let function = function.map_err(|refusal| {
            let message = format!("it has no kernel {name}: {}", words(refusal));
            DeviceError::Compile { program: program.to_string(), message }
        })?;
        let function = function as u64;
        self.names.lock().unwrap_or_else(PoisonError::into_inner).insert(function, name);
        Ok(Function(function))
    }

    unsafe fn launch(
        &self,
        function: Function,
        launch: &Launch,
        arguments: &[&[u8]],
    ) -> Result<(), DeviceError> {
        self.enter()?;
        let handle = function.0 as sys::CUfunction;
        let mut pointers: Vec<*mut c_void> =
            arguments.iter().map(|bytes| bytes.as_ptr().cast_mut().cast()).collect();
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        // SAFETY: the function is loaded for good; the driver reads the arguments before it returns, and that
        // they are the right ones is the caller's promise.
        let started = unsafe {
            let shared = launch.shared_bytes;
            result::launch_kernel(handle, (gx, gy, gz), (bx, by, bz), shared, self.stream, &mut pointers)
        };
        let name = || self.names.lock().unwrap_or_else(PoisonError::into_inner).get(&function.0).copied();
        started.map_err(|refusal| match failed("launching", refusal) {
            DeviceError::Driver { message, .. } => DeviceError::Launch {
                kernel: name().unwrap_or_default().into(),
                launch: launch.to_string(),
                message,
            },
            fault => fault,
        })?;
        if !self.is_blocking {
            return Ok(());
        }
        self.synchronize().map_err(|error| match error {
            DeviceError::Fault { message, .. } => {
                let kernels = format!("{} with {launch}", name().unwrap_or_default());
                DeviceError::Fault { kernels, message }
            }
            other => other,
        })
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the stream lives as long as this driver.
        unsafe { result::stream::synchronize(self.stream) }
            .map_err(|refusal| failed("waiting for the GPU", refusal))
    }

    fn synchronize_all(&self) -> Result<(), DeviceError> {
        self.enter()?;
        result::ctx::synchronize().map_err(|refusal| failed("waiting for all streams", refusal))
    }

    fn stream(&self) -> u64 {
        self.stream as u64
    }

    unsafe fn wait_for_stream(&self, stream: u64) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: both streams exist, the other one by the promise of the caller.
        unsafe { sharing::order(stream as sys::CUstream, self.stream) }
    }

    unsafe fn hold_stream(&self, stream: u64) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: as above.
        unsafe { sharing::order(self.stream, stream as sys::CUstream) }
    }

    fn open_to(&self, ordinals: &[usize]) -> Result<bool, DeviceError> {
        self.enter()?;
        pool::open_to(self.properties.ordinal, ordinals, self.has_pool)
            .map_err(|refusal| failed("giving other GPUs access", refusal))
    }

    fn mark(&self) -> Result<Event, DeviceError> {
        self.enter()?;
        let flags = sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING;
        let made = result::event::create(flags).map(|event| Event(event as u64));
        made.map_err(|refusal| failed("making a mark", refusal))
    }

    unsafe fn set_mark(&self, mark: Event) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the event is one of this context by the promise of the caller, and the stream lives as long as this driver.
        unsafe { result::event::record(mark.0 as sys::CUevent, self.stream) }
            .map_err(|refusal| failed("setting a mark", refusal))
    }

    unsafe fn await_mark(&self, mark: Event) -> Result<(), DeviceError> {
        self.enter()?;
        let flags = sys::CUevent_wait_flags_enum::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: the event exists by the promise of the caller; it may be one of another GPU.
        unsafe { result::stream::wait_event(self.stream, mark.0 as sys::CUevent, flags) }
            .map_err(|refusal| failed("waiting for another GPU", refusal))
    }

    fn begin_recording(&self) -> Result<(), DeviceError> {
        self.enter()?;
        let mode = sys::CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream lives as long as this driver.
        unsafe { result::stream::begin_capture(self.stream, mode) }
            .map_err(|refusal| failed("beginning a recording", refusal))
    }

    fn end_recording(&self) -> Result<Graph, DeviceError> {
        self.enter()?;
        // SAFETY: the stream is recording; the graph is not needed once it can be executed.
        unsafe {
            let graph = result::stream::end_capture(self.stream)
                .map_err(|refusal| failed("ending a recording", refusal))?;
            let ready = result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0));
            let _ = result::graph::destroy(graph);
            let ready = ready.map_err(|refusal| failed("making a recording ready", refusal))?;
            let _ = result::graph::upload(ready, self.stream);
            Ok(Graph(ready as u64))
        }
    }

    unsafe fn replay(&self, graph: Graph) -> Result<(), DeviceError> {
        self.enter()?;
        // SAFETY: the graph came from `end_recording` and has not been forgotten.
        unsafe { result::graph::launch(graph.0 as sys::CUgraphExec, self.stream) }
            .map_err(|refusal| failed("replaying a recording", refusal))
    }

    unsafe fn forget(&self, graph: Graph) {
        if self.enter().is_ok() {
            // SAFETY: as above; the driver keeps it until its last replay has ended.
            let _ = unsafe { result::graph::exec_destroy(graph.0 as sys::CUgraphExec) };
        }
    }

    fn record_event(&self) -> Result<Event, DeviceError> {
        self.enter()?;
        let flags = sys::CUevent_flags_enum::CU_EVENT_DEFAULT;
        let recorded = result::event::create(flags).and_then(|event| {
            // SAFETY: the event is fresh and the stream lives as long as this driver.
            unsafe { result::event::record(event, self.stream) }.map(|()| Event(event as u64))
        });
        recorded.map_err(|refusal| failed("marking a moment", refusal))
    }

    unsafe fn seconds_between(&self, first: Event, second: Event) -> Result<f64, DeviceError> {
        self.enter()?;
        let (first, second) = (first.0 as sys::CUevent, second.0 as sys::CUevent);
        // SAFETY: both events came from `record_event` and are used for the last time.
        let elapsed = unsafe {
            let elapsed =
                result::event::synchronize(second).and_then(|()| result::event::elapsed(first, second));
            let _ = result::event::destroy(first);
            let _ = result::event::destroy(second);
            elapsed
        };
        elapsed.map(|ms| f64::from(ms) * 1e-3).map_err(|refusal| failed("waiting for a moment", refusal))
    }

    fn compiler(&self) -> String {
        self.compiler.description()
    }
}

impl Drop for Nvidia {
    fn drop(&mut self) {
        if self.enter().is_ok() {
            self.staging().release();
            self.pinned().clear();
            // SAFETY: nobody can use the stream any more; the driver ends what is left in it first.
            let _ = unsafe { result::stream::destroy(self.stream) };
        }
    }
}
