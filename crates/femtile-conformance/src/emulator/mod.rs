//! CUDA kernels on the host: the same text, compiled by the C++ compiler, every access checked.
//!
//! [`Emulator`] is a driver, so `Cuda::with_driver(Arc::new(Emulator::new()?))` is a device like a GPU, only slow.
//! The compiler's `-fsanitize=thread` puts a call before every access; the runtime (`runtime/`) has these calls.
//! Threads of a block are fibers, and blocks run one after another in an order that differs from launch to launch,
//! the same in every run of a program. A launch in which a kernel breaks a rule fails with [`DeviceError::Fault`],
//! which says who did what, where in the source. The rules:
//!
//! - device memory is touched inside a buffer that has not been given back, and read only where it was written;
//!   addresses are multiples of what is read or written there at once;
//! - shared memory is touched inside one array, and read only where this block wrote it;
//! - a barrier is reached by all threads of its block at the same place of the source, an operation of a warp by
//!   all lanes of its mask; a shuffle takes the value of a lane that takes part;
//! - two threads of a block touch the same byte, one of them writing, only with a barrier between (a barrier of the
//!   warp will do inside one), atomics among themselves excepted; shuffles and ballots order no memory;
//! - two blocks do so only if the first met a fence and then an atomic operation after its access (the fence in the
//!   same thread as the access, or behind a barrier), and the second an atomic operation at the same address before
//!   its own.

mod compiler;
mod driver;
mod launch;
mod library;
mod memory;
mod report;
mod text;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use compiler::{Compiler, Source};
use femtile::device::DeviceError;
use femtile::device::cuda::{Properties, Specialisation};
use launch::{Kernel, Recorded, Recording};
use library::Library;
use memory::Memory;
pub use text::without_barrier;

type Mutation = dyn Fn(&str, &str) -> String + Send + Sync;

/// Memory that the emulated GPU has unless a test gives it less.
const MEMORY_BYTES: usize = 1 << 30;
const NAME: &str = "host emulator";

/// A GPU that is emulated on the host; see the [module](self).
pub struct Emulator {
    properties: Properties,
    compiler: Compiler,
    mutation: Option<Box<Mutation>>,
    seed: u64,
    state: Mutex<State>,
}

struct State {
    memory: Memory,
    libraries: HashMap<String, Arc<Library>>,
    kernels: Vec<Kernel>,
    next_segment: u32,
    n_launches: u64,
    next_handle: u64,
    recording: Option<Recording>,
    graphs: HashMap<u64, Arc<Vec<Recorded>>>,
    transfers: HashMap<u64, Vec<u8>>,
    events: HashMap<u64, Instant>,
}

fn absent(reason: String) -> DeviceError {
    DeviceError::Absent { requested: "emulated CUDA".into(), reason }
}

fn refused(action: &'static str, message: impl Into<String>) -> DeviceError {
    DeviceError::Driver { action, message: message.into() }
}

impl Emulator {
    /// An emulated GPU, whose kernels the compiler that `CXX` names builds, else `c++` or `g++`.
    ///
    /// # Errors
    /// [`DeviceError::Absent`] with advice where there is no C++ compiler or no address space.
    pub fn new() -> Result<Self, DeviceError> {
        let compiler = Compiler::find().map_err(absent)?;
        let memory = Memory::new(MEMORY_BYTES)
            .map_err(|error| absent(format!("the system has no address space for its memory: {error}")))?;
        let properties = Properties {
            name: NAME.into(),
            ordinal: 0,
            compute_capability: (9, 0),
            n_multiprocessors: 4,
            memory_bytes: MEMORY_BYTES,
            l2_bytes: 1 << 20,
            cuda_version: (13, 0),
        };
        let state = State {
            memory,
            libraries: HashMap::new(),
            kernels: Vec::new(),
            next_segment: 1,
            n_launches: 0,
            next_handle: 0,
            recording: None,
            graphs: HashMap::new(),
            transfers: HashMap::new(),
            events: HashMap::new(),
        };
        Ok(Self { properties, compiler, mutation: None, seed: 0, state: Mutex::new(state) })
    }

    /// Limits the memory to `bytes`, at most 1 GiB.
    #[must_use]
    pub fn with_memory(mut self, bytes: usize) -> Self {
        let limit = self.state().memory.limit_to(bytes);
        self.properties.memory_bytes = limit;
        self
    }

    /// The same with every text of a program, given by name, changed before it is compiled.
    #[must_use]
    pub fn mutate(self, mutation: impl Fn(&str, &str) -> String + Send + Sync + 'static) -> Self {
        Self { mutation: Some(Box::new(mutation)), ..self }
    }

    /// The same with another order of blocks.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The texts of a program as they are compiled.
    fn source(&self, program: &Specialisation) -> Source {
        let changed = |name: &str, text: &str| match &self.mutation {
            Some(mutation) => mutation(name, text),
            None => text.into(),
        };
        let of = program.program();
        Source {
            name: of.name.into(),
            text: changed(&format!("{}.cu", of.name), of.source),
            headers: program.headers().map(|(name, text)| (name.into(), changed(name, text))).collect(),
            defines: program.defines().iter().map(|(name, value)| ((*name).into(), value.clone())).collect(),
        }
    }

    fn library(&self, state: &mut State, program: &Specialisation) -> Result<Arc<Library>, DeviceError> {
        let key = program.key();
        if let Some(library) = state.libraries.get(&key) {
            return Ok(library.clone());
        }
        let source = self.source(program);
        let built = self.compiler.build(&source);
        let loaded = built.and_then(|built| Library::load(built.path, built.folder, &source.entries()));
        let failed = |message| DeviceError::Compile { program: program.to_string(), message };
        let library = Arc::new(loaded.map_err(failed)?);
        state.libraries.insert(key, library.clone());
        Ok(library)
    }
}

impl State {
    fn handle(&mut self) -> u64 {
        self.next_handle += 1;
        self.next_handle
    }

    /// Refuses what cannot be recorded, and with it the recording under way.
    fn not_recorded(&mut self, action: &'static str) -> Result<(), DeviceError> {
        let Some(recording) = &mut self.recording else { return Ok(()) };
        recording.refusal = Some(action);
        Err(refused(action, "a recording is being made, and only launches can be recorded"))
    }
}

impl fmt::Debug for Emulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Emulator with {}", self.compiler.description())
    }
}
