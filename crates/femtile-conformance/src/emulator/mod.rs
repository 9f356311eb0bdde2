//! CUDA kernels on the host: the same text, compiled by the C++ compiler, every access checked.
//!
//! [`Emulator`] is a driver, so `Cuda::with_driver(Arc::new(Emulator::new()?))` is a device like a GPU, only slow.
//! A kernel that breaks a rule (`runtime.cpp` lists them) ends its launch with [`DeviceError::Fault`], which says
//! where. Blocks run in an order that differs from launch to launch, the same in every run of a program.

mod compile;
mod mutant;

use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use femtile::device::DeviceError;
use femtile::device::cuda::{Driver, Event, Function, Graph, Launch, Properties, Specialisation, Transfer};
use libloading::Library;
use libloading::os::unix::{Library as UnixLibrary, RTLD_GLOBAL, RTLD_NOW};

use compile::HostCompiler;
pub use mutant::without_barrier;

type Thunk = unsafe extern "C" fn(*mut *mut c_void);
type Mutation = dyn Fn(&str, &str) -> String + Send + Sync;

/// Memory that the emulated GPU has unless a test gives it less.
const MEMORY: usize = 512 << 20;

/// A GPU that is emulated on the host.
pub struct Emulator {
    properties: Properties,
    compiler: HostCompiler,
    runtime: &'static Runtime,
    memory: usize,
    mutation: Option<Box<Mutation>>,
    state: Mutex<State>,
}

/// What all emulators of a process share, since memory and threads of the runtime are one.
struct Runtime {
    library: UnixLibrary,
    turn: Mutex<()>,
}

static RUNTIME: OnceLock<Result<Runtime, DeviceError>> = OnceLock::new();

#[derive(Default)]
struct State {
    programs: HashMap<String, Library>,
    kernels: Vec<Kernel>,
    sizes: HashMap<u64, usize>,
    recording: Option<Vec<Recorded>>,
    graphs: Vec<Option<Vec<Recorded>>>,
    events: Vec<Instant>,
    transfers: Vec<Option<Vec<u8>>>,
    n_launches: u64,
}

#[derive(Clone)]
struct Kernel {
    name: &'static str,
    thunk: Thunk,
    shared: (usize, usize),
    sizes: Vec<usize>,
}

#[derive(Clone)]
struct Recorded {
    function: Function,
    launch: Launch,
    arguments: Vec<Vec<u8>>,
}

impl fmt::Debug for Emulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Emulator")
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Runtime {
    fn get(compiler: &HostCompiler) -> Result<&'static Self, DeviceError> {
        RUNTIME.get_or_init(|| Self::load(compiler)).as_ref().map_err(Clone::clone)
    }

    fn load(compiler: &HostCompiler) -> Result<Self, DeviceError> {
        let path = compiler.runtime()?;
        // SAFETY: the library was built from our own text; programs find its functions because it is global.
        let library =
            unsafe { UnixLibrary::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) }.map_err(not_loaded)?;
        Ok(Self { library, turn: Mutex::default() })
    }

    /// # Safety
    /// `F` is the type of the function of this name in `runtime.cpp`.
    unsafe fn call<F: Copy>(&self, name: &CStr) -> Result<F, DeviceError> {
        // SAFETY: the caller names the right type.
        let symbol = unsafe { self.library.get::<F>(name.to_bytes_with_nul()) };
        symbol.map(|symbol| *symbol).map_err(not_loaded)
    }
}

fn not_loaded(error: libloading::Error) -> DeviceError {
    DeviceError::Driver { action: "loading an emulated program", message: error.to_string() }
}

impl Emulator {
    /// An emulated GPU.
    ///
    /// # Errors
    /// [`DeviceError::Absent`] where there is no C++ compiler.
    pub fn new() -> Result<Self, DeviceError> {
        let compiler = HostCompiler::find()?;
        let runtime = Runtime::get(&compiler)?;
        let properties = Properties {
            name: "host emulator".into(),
            ordinal: 0,
            compute_capability: (9, 0),
            n_multiprocessors: 4,
            memory_bytes: MEMORY,
            l2_bytes: 1 << 16,
            cuda_version: (13, 0),
        };
        let state = Mutex::default();
        Ok(Self { properties, compiler, runtime, memory: MEMORY, mutation: None, state })
    }

    /// The same with so many bytes of memory.
    #[must_use]
    pub fn with_memory(self, bytes: usize) -> Self {
        Self { memory: bytes, ..self }
    }

    /// The same with every text of a program, given by name, changed before it is compiled.
    #[must_use]
    pub fn mutate(self, mutation: impl Fn(&str, &str) -> String + Send + Sync + 'static) -> Self {
        Self { mutation: Some(Box::new(mutation)), ..self }
    }

    fn changed(&self, name: &str, text: &str) -> String {
        self.mutation.as_ref().map_or_else(|| text.into(), |mutation| mutation(name, text))
    }

    fn load(&self, program: &Specialisation) -> Result<Library, DeviceError> {
        let headers: Vec<(String, String)> =
            program.headers().map(|(name, text)| (name.into(), self.changed(name, text))).collect();
        let name = program.program().name;
        let source = self.changed(&format!("{name}.cu"), program.program().source);
        let path = self.compiler.program(name, &source, &headers, program.defines())?;
        // SAFETY: the library was built from our own texts.
        unsafe { Library::new(path) }.map_err(not_loaded)
    }

    /// Runs a kernel now.
    fn carry_out(&self, work: &Recorded) -> Result<(), DeviceError> {
        let (kernel, seed) = {
            let mut state = locked(&self.state);
            state.n_launches += 1;
            let place = usize::try_from(work.function.0).unwrap_or(usize::MAX);
            let kernel = state.kernels.get(place).cloned();
            (kernel, state.n_launches)
        };
        let fault = |kernels: &str, message: String| DeviceError::Fault { kernels: kernels.into(), message };
        let Some(kernel) = kernel else { return Err(fault("unknown", "there is no such kernel".into())) };
        let sizes: Vec<usize> = work.arguments.iter().map(Vec::len).collect();
        if sizes != kernel.sizes {
            let message = format!("arguments of {sizes:?} bytes where {:?} are needed", kernel.sizes);
            return Err(fault(kernel.name, message));
        }
        // Arguments are read as their types, so they are aligned as any of them may be.
        let mut aligned: Vec<Vec<u128>> = work.arguments.iter().map(|bytes| as_words(bytes)).collect();
        let mut pointers: Vec<*mut c_void> =
            aligned.iter_mut().map(|words| words.as_mut_ptr().cast()).collect();
        let _turn = locked(&self.runtime.turn);
        // SAFETY: the types are those of runtime.cpp; the arguments have the sizes of the kernel's parameters, and
        // what the kernel touches is checked there before it is touched.
        let report = unsafe {
            type Run = unsafe extern "C" fn(
                Thunk,
                *mut *mut c_void,
                *const u32,
                *const u32,
                u32,
                usize,
                usize,
                u64,
            ) -> *const c_char;
            let run: Run = self.runtime.call(c"emulator_launch")?;
            let Launch { grid, block, shared_bytes } = work.launch;
            let (begin, end) = kernel.shared;
            let arguments = pointers.as_mut_ptr();
            let report =
                run(kernel.thunk, arguments, grid.as_ptr(), block.as_ptr(), shared_bytes, begin, end, seed);
            (!report.is_null()).then(|| CStr::from_ptr(report).to_string_lossy().into_owned())
        };
        report.map_or(Ok(()), |report| Err(fault(kernel.name, report)))
    }

    /// Refuses copies that leave a buffer, and any while a recording is made.
    fn check_copy(&self, action: &'static str, address: u64, bytes: usize) -> Result<(), DeviceError> {
        if locked(&self.state).recording.is_some() {
            return Err(DeviceError::Driver { action, message: "a recording is being made".into() });
        }
        let _turn = locked(&self.runtime.turn);
        // SAFETY: the type is that of runtime.cpp.
        let holds = unsafe {
            let holds: unsafe extern "C" fn(u64, u64) -> i32 = self.runtime.call(c"emulator_holds")?;
            holds(address, bytes as u64) != 0
        };
        let outside = || DeviceError::Driver { action, message: format!("{bytes} bytes leave their buffer") };
        if holds { Ok(()) } else { Err(outside()) }
    }

    fn mark_written(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        let _turn = locked(&self.runtime.turn);
        // SAFETY: the type is that of runtime.cpp, and the range lies in a buffer.
        unsafe {
            let written: unsafe extern "C" fn(u64, u64) = self.runtime.call(c"emulator_written")?;
            written(address, bytes as u64);
        }
        Ok(())
    }
}

fn as_words(bytes: &[u8]) -> Vec<u128> {
    let word = |part: &[u8]| {
        let mut word = [0; 16];
        word[..part.len()].copy_from_slice(part);
        u128::from_ne_bytes(word)
    };
    bytes.chunks(16).map(word).collect()
}

/// Sizes of the parameters, if their types are those declared.
fn parameters(name: &str, found: &str, declared: &[String]) -> Result<Vec<usize>, String> {
    let found: Vec<(&str, usize)> = found
        .split_terminator(';')
        .filter_map(|parameter| parameter.split_once(':'))
        .filter_map(|(of_type, bytes)| Some((of_type, bytes.parse().ok()?)))
        .collect();
    if found.len() != declared.len() {
        return Err(format!("{name} has {} parameters, {} are declared", found.len(), declared.len()));
    }
    for (i, ((of_type, _), declared)) in found.iter().zip(declared).enumerate() {
        if of_type != declared {
            return Err(format!("parameter {i} of {name} is `{of_type}`, declared as `{declared}`"));
        }
    }
    Ok(found.into_iter().map(|(_, bytes)| bytes).collect())
}

impl Driver for Emulator {
    fn properties(&self) -> &Properties {
        &self.properties
    }

    fn memory_bytes(&self) -> Result<(usize, usize), DeviceError> {
        let taken: usize = locked(&self.state).sizes.values().sum();
        Ok((self.memory.saturating_sub(taken), self.memory))
    }

    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        let (free, total) = self.memory_bytes()?;
        let out_of_memory =
            || DeviceError::OutOfMemory { device: "host emulator".into(), needed: bytes, free, total };
        if bytes > free {
            return Err(out_of_memory());
        }
        let _turn = locked(&self.runtime.turn);
        // SAFETY: the type is that of runtime.cpp.
        let address = unsafe {
            let allocate: unsafe extern "C" fn(u64) -> u64 = self.runtime.call(c"emulator_allocate")?;
            allocate(bytes as u64)
        };
        if address == 0 {
            return Err(out_of_memory());
        }
        locked(&self.state).sizes.insert(address, bytes);
        Ok(address)
    }

    fn free(&self, address: u64) {
        let _turn = locked(&self.runtime.turn);
        // SAFETY: the type is that of runtime.cpp, and the address came from `allocate`.
        if let Ok(free) = unsafe { self.runtime.call::<unsafe extern "C" fn(u64)>(c"emulator_free") } {
            // SAFETY: as above.
            unsafe { free(address) };
        }
        locked(&self.state).sizes.remove(&address);
    }

    fn zero(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        self.check_copy("clearing memory", address, bytes)?;
        // SAFETY: the range lies in a buffer, and no kernel runs.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, bytes) };
        self.mark_written(address, bytes)
    }

    fn upload(&self, to: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.check_copy("copying to the GPU", to, from.len())?;
        // SAFETY: the range lies in a buffer, and no kernel runs.
        unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to as *mut u8, from.len()) };
        self.mark_written(to, from.len())
    }

    fn download(&self, to: &mut [u8], from: u64) -> Result<(), DeviceError> {
        self.check_copy("copying from the GPU", from, to.len())?;
        // SAFETY: the range lies in a buffer, and no kernel runs.
        unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.as_mut_ptr(), to.len()) };
        Ok(())
    }

    fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), DeviceError> {
        let mut through = vec![0; bytes];
        self.download(&mut through, from)?;
        self.upload(to, &through)
    }

    fn begin_download(&self, from: u64, bytes: usize) -> Result<Transfer, DeviceError> {
        let mut copy = vec![0; bytes];
        self.download(&mut copy, from)?;
        let mut state = locked(&self.state);
        state.transfers.push(Some(copy));
        Ok(Transfer(state.transfers.len() as u64 - 1))
    }

    fn end_download(&self, transfer: Transfer) -> Result<Vec<u8>, DeviceError> {
        let place = usize::try_from(transfer.0).unwrap_or(usize::MAX);
        let taken = locked(&self.state).transfers.get_mut(place).and_then(Option::take);
        let message = "the transfer has been ended before".into();
        taken.ok_or(DeviceError::Driver { action: "waiting for a copy", message })
    }

    fn function(
        &self,
        program: &Specialisation,
        name: &'static str,
        signature: &[String],
    ) -> Result<Function, DeviceError> {
        let mut state = locked(&self.state);
        let key = program.key();
        if !state.programs.contains_key(&key) {
            let library = self.load(program)?;
            state.programs.insert(key.clone(), library);
        }
        let library = &state.programs[&key];
        let refused = |message: String| DeviceError::Compile { program: program.to_string(), message };
        // SAFETY: the types are those that emulated_cuda.h gives these functions.
        let (thunk, found, shared) = unsafe {
            let absent = |_| refused(format!("it has no kernel {name}"));
            let thunk = library.get::<Thunk>(format!("femtile_run_{name}\0")).map_err(absent)?;
            let signature = format!("femtile_signature_{name}\0");
            let signature =
                library.get::<unsafe extern "C" fn() -> *const c_char>(signature).map_err(absent)?;
            let found = CStr::from_ptr(signature()).to_string_lossy().into_owned();
            let bound = |symbol: &str| library.get::<unsafe extern "C" fn() -> usize>(symbol);
            let begin = bound("emulator_shared_begin\0").map_err(not_loaded)?;
            let end = bound("emulator_shared_end\0").map_err(not_loaded)?;
            (*thunk, found, (begin(), end()))
        };
        let sizes = parameters(name, &found, signature).map_err(refused)?;
        state.kernels.push(Kernel { name, thunk, shared, sizes });
        Ok(Function(state.kernels.len() as u64 - 1))
    }

    unsafe fn launch(
        &self,
        function: Function,
        launch: &Launch,
        arguments: &[&[u8]],
    ) -> Result<(), DeviceError> {
        let arguments = arguments.iter().map(|bytes| bytes.to_vec()).collect();
        let work = Recorded { function, launch: *launch, arguments };
        if let Some(recording) = &mut locked(&self.state).recording {
            recording.push(work);
            return Ok(());
        }
        self.carry_out(&work)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn begin_recording(&self) -> Result<(), DeviceError> {
        locked(&self.state).recording = Some(Vec::new());
        Ok(())
    }

    fn end_recording(&self) -> Result<Graph, DeviceError> {
        let mut state = locked(&self.state);
        let recording = state.recording.take();
        state.graphs.push(recording);
        Ok(Graph(state.graphs.len() as u64 - 1))
    }

    fn replay(&self, graph: Graph) -> Result<(), DeviceError> {
        let place = usize::try_from(graph.0).unwrap_or(usize::MAX);
        let recorded = locked(&self.state).graphs.get(place).cloned().flatten();
        let message = "there is no such recording".into();
        let recorded = recorded.ok_or(DeviceError::Driver { action: "replaying a recording", message })?;
        recorded.iter().try_for_each(|work| self.carry_out(work))
    }

    fn forget(&self, graph: Graph) {
        let place = usize::try_from(graph.0).unwrap_or(usize::MAX);
        if let Some(recorded) = locked(&self.state).graphs.get_mut(place) {
            *recorded = None;
        }
    }

    fn record_event(&self) -> Result<Event, DeviceError> {
        let mut state = locked(&self.state);
        state.events.push(Instant::now());
        Ok(Event(state.events.len() as u64 - 1))
    }

    fn seconds_between(&self, first: Event, second: Event) -> Result<f64, DeviceError> {
        let state = locked(&self.state);
        let at = |event: Event| state.events.get(usize::try_from(event.0).unwrap_or(usize::MAX)).copied();
        let message = "there is no such moment".into();
        let between = at(first).zip(at(second)).map(|(first, second)| (second - first).as_secs_f64());
        between.ok_or(DeviceError::Driver { action: "waiting for a moment", message })
    }

    fn compiler(&self) -> String {
        "the C++ compiler of the host".into()
    }
}
