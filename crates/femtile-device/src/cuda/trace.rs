//! Times of launches and copies, for profiles.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::driver::{Driver, Event, Function, Graph, Launch, PendingCopy, Properties};
use super::program::Specialisation;
use crate::DeviceError;

/// Work that is timed by events before the oldest is waited for, which bounds the events of the driver.
const MOST_PENDING: usize = 4096;
/// The largest number of records that are kept; further work is only counted.
const MOST_KEPT: usize = 1 << 18;

/// The trace of this process, once there is one.
static OF_PROCESS: OnceLock<Arc<CudaTrace>> = OnceLock::new();

/// The kind of a piece of traced work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TracedKind {
    /// A kernel, or the replay of a recording, on the GPU.
    Kernel,
    /// A copy or the clearing of an array.
    Copy,
    /// Compiling or loading a kernel, on the host.
    Load,
}

/// A piece of work with its time.
#[derive(Debug, Clone, PartialEq)]
pub struct TracedWork {
    /// Whether it was a kernel, a copy or the loading of a kernel.
    pub kind: TracedKind,
    /// The kernel, of a recording its most frequent kernel, or the direction of a copy.
    pub name: String,
    /// The start of the work. On the GPU: when it was queued, or the end of the work before it if that is
    /// later.
    pub begun: Instant,
    /// How long it took, on the GPU by its own clock.
    pub length: Duration,
    /// Bytes of a copy.
    pub bytes: Option<usize>,
    /// The kernels of a replayed recording, with their numbers of launches; empty for other work.
    pub kernels: BTreeMap<&'static str, usize>,
    /// When the program of a kernel that is loaded was announced, if it was.
    pub announced: Option<Instant>,
}

/// The work of GPUs, with times by events before and after each launch, replay and copy.
///
/// Times of short kernels contain the few microseconds of their launch if the GPU has no other work. Events
/// cost the host some microseconds per launch.
#[derive(Debug, Default)]
pub struct CudaTrace {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    done: Vec<TracedWork>,
    pending: Vec<(TracedWork, Event, Event)>,
    /// The end of the last work on the GPU.
    end: Option<Instant>,
    n_left_out: u64,
    names: HashMap<Function, &'static str>,
    graphs: HashMap<Graph, BTreeMap<&'static str, usize>>,
    recording: Option<BTreeMap<&'static str, usize>>,
    /// By their keys, when programs were announced first.
    announced: HashMap<String, Instant>,
}

impl State {
    fn keep(&mut self, work: TracedWork) {
        match self.done.len() < MOST_KEPT {
            true => self.done.push(work),
            false => self.n_left_out += 1,
        }
    }
}

impl CudaTrace {
    /// Returns the trace of all GPUs that this process opens from now on.
    pub fn of_process() -> Arc<Self> {
        OF_PROCESS.get_or_init(Arc::default).clone()
    }

    /// Returns a driver that adds its work to this trace.
    pub fn driver(self: &Arc<Self>, inner: Arc<dyn Driver>) -> Arc<dyn Driver> {
        Arc::new(TracedDriver { inner, trace: self.clone() })
    }

    /// Takes the work so far, and the number of launches and copies beyond those that are kept. Work that no
    /// copy to the host has waited for yet is left for later.
    pub fn take(&self) -> (Vec<TracedWork>, u64) {
        let mut state = self.state();
        (std::mem::take(&mut state.done), std::mem::take(&mut state.n_left_out))
    }

    /// Notes the programs that are announced now.
    fn announce(&self, programs: &[Specialisation]) {
        let (now, mut state) = (Instant::now(), self.state());
        for program in programs {
            state.announced.entry(program.key()).or_insert(now);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notes programs that are announced for a GPU of this process.
pub(super) fn announced(programs: &[Specialisation]) {
    OF_PROCESS.get().into_iter().for_each(|trace| trace.announce(programs));
}

/// The driver of traced GPUs of this process, or the driver itself without tracing.
pub(super) fn traced(driver: Arc<dyn Driver>) -> Arc<dyn Driver> {
    OF_PROCESS.get().map_or(driver.clone(), |trace| trace.driver(driver))
}

/// A driver that times its work.
#[derive(Debug)]
struct TracedDriver {
    inner: Arc<dyn Driver>,
    trace: Arc<CudaTrace>,
}

/// Returns work that begins now.
fn work(kind: TracedKind, name: &str, bytes: Option<usize>) -> TracedWork {
    let (begun, length, kernels) = (Instant::now(), Duration::ZERO, BTreeMap::new());
    TracedWork { kind, name: name.into(), begun, length, bytes, kernels, announced: None }
}

impl TracedDriver {
    /// Queues work between two events. A recording has no events, because they would become a part of it.
    fn between_events(
        &self,
        traced: TracedWork,
        queue: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        if self.trace.state().recording.is_some() {
            return queue();
        }
        let first = self.inner.record_event()?;
        queue()?;
        let second = self.inner.record_event()?;
        let n_pending = {
            let mut state = self.trace.state();
            state.pending.push((traced, first, second));
            state.pending.len()
        };
        match n_pending > MOST_PENDING {
            true => self.settle(MOST_PENDING / 2),
            false => Ok(()),
        }
    }

    /// Waits for the work pending but the last `n_left` pieces, and notes its times.
    fn settle(&self, n_left: usize) -> Result<(), DeviceError> {
        let mut state = self.trace.state();
        let n = state.pending.len().saturating_sub(n_left);
        let settled: Vec<_> = state.pending.drain(..n).collect();
        for (mut work, first, second) in settled {
            // SAFETY: both events are those recorded around the work, and are forgotten here.
            let seconds = unsafe { self.inner.seconds_between(first, second) }?;
            work.begun = state.end.map_or(work.begun, |end| end.max(work.begun));
            work.length = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            state.end = Some(work.begun + work.length);
            state.keep(work);
        }
        Ok(())
    }
}

impl Driver for TracedDriver {
    fn properties(&self) -> &Properties {
        self.inner.properties()
    }

    fn memory_bytes(&self) -> Result<(usize, usize), DeviceError> {
        self.inner.memory_bytes()
    }

    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.inner.allocate(bytes)
    }

    unsafe fn free(&self, address: u64) {
        // SAFETY: as the caller promises; also in the functions below.
        unsafe { self.inner.free(address) }
    }

    fn allocate_on_host(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.inner.allocate_on_host(bytes)
    }

    unsafe fn free_on_host(&self, address: u64) {
        // SAFETY: as the caller promises.
        unsafe { self.inner.free_on_host(address) }
    }

    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: as the caller promises.
        self.between_events(work(TracedKind::Copy, "clear", Some(bytes)), || unsafe {
            self.inner.zero(address, bytes)
        })
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<(), DeviceError> {
        // SAFETY: as the caller promises.
        self.between_events(work(TracedKind::Copy, "copy to the GPU", Some(from.len())), || unsafe {
            self.inner.upload(to, from)
        })
    }

    unsafe fn download(&self, to: &mut [u8], from: u64) -> Result<(), DeviceError> {
        // SAFETY: as the caller promises.
        self.between_events(work(TracedKind::Copy, "copy to the host", Some(to.len())), || unsafe {
            self.inner.download(to, from)
        })?;
        self.settle(0)
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: as the caller promises.
        self.between_events(work(TracedKind::Copy, "copy", Some(bytes)), || unsafe {
            self.inner.copy(to, from, bytes)
        })
    }

    unsafe fn begin_download(&self, from: u64, bytes: usize) -> Result<PendingCopy, DeviceError> {
        // SAFETY: as the caller promises.
        unsafe { self.inner.begin_download(from, bytes) }
    }

    fn end_download(&self, transfer: PendingCopy) -> Result<Vec<u8>, DeviceError> {
        self.inner.end_download(transfer)
    }

    fn prepare(&self, programs: Vec<Specialisation>) {
        self.trace.announce(&programs);
        self.inner.prepare(programs);
    }

    fn warm_up(&self) {
        self.inner.warm_up();
    }

    fn function(
        &self,
        program: &Specialisation,
        name: &'static str,
        signature: &[String],
    ) -> Result<Function, DeviceError> {
        let mut load = work(TracedKind::Load, &format!("{name} of {program}"), None);
        let function = self.inner.function(program, name, signature)?;
        load.length = load.begun.elapsed();
        let mut state = self.trace.state();
        load.announced = state.announced.get(&program.key()).copied();
        state.names.insert(function, name);
        state.keep(load);
        Ok(function)
    }

    unsafe fn launch(
        &self,
        function: Function,
        launch: &Launch,
        arguments: &[&[u8]],
    ) -> Result<(), DeviceError> {
        let name = {
            let mut state = self.trace.state();
            let name = state.names.get(&function).copied().unwrap_or("kernel");
            if let Some(recording) = &mut state.recording {
                *recording.entry(name).or_default() += 1;
            }
            name
        };
        // SAFETY: as the caller promises.
        self.between_events(work(TracedKind::Kernel, name, None), || unsafe {
            self.inner.launch(function, launch, arguments)
        })
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.inner.synchronize()?;
        self.settle(0)
    }

    fn synchronize_all(&self) -> Result<(), DeviceError> {
        self.inner.synchronize_all()?;
        self.settle(0)
    }

    fn stream(&self) -> u64 {
        self.inner.stream()
    }

    unsafe fn wait_for_stream(&self, stream: u64) -> Result<(), DeviceError> {
        // SAFETY: as the caller promises.
        unsafe { self.inner.wait_for_stream(stream) }
    }

    unsafe fn hold_stream(&self, stream: u64) -> Result<(), DeviceError> {
        // SAFETY: as the caller promises.
        unsafe { self.inner.hold_stream(stream) }
    }

    fn begin_recording(&self) -> Result<(), DeviceError> {
        self.inner.begin_recording()?;
        self.trace.state().recording = Some(BTreeMap::new());
        Ok(())
    }

    fn end_recording(&self) -> Result<Graph, DeviceError> {
        let kernels = self.trace.state().recording.take().unwrap_or_default();
        let graph = self.inner.end_recording()?;
        self.trace.state().graphs.insert(graph, kernels);
        Ok(graph)
    }

    unsafe fn replay(&self, graph: Graph) -> Result<(), DeviceError> {
        let kernels = self.trace.state().graphs.get(&graph).cloned().unwrap_or_default();
        let most = kernels.iter().max_by_key(|(_, n)| **n).map_or("", |(name, _)| name);
        let replay = work(TracedKind::Kernel, &format!("recording: {most}"), None);
        // SAFETY: as the caller promises.
        self.between_events(TracedWork { kernels, ..replay }, || unsafe { self.inner.replay(graph) })
    }

    unsafe fn forget(&self, graph: Graph) {
        self.trace.state().graphs.remove(&graph);
        // SAFETY: as the caller promises.
        unsafe { self.inner.forget(graph) }
    }

    fn open_to(&self, ordinals: &[usize]) -> Result<bool, DeviceError> {
        self.inner.open_to(ordinals)
    }

    fn mark(&self) -> Result<Event, DeviceError> {
        self.inner.mark()
    }

    unsafe fn set_mark(&self, mark: Event) -> Result<(), DeviceError> {
        // SAFETY: as the caller promises.
        unsafe { self.inner.set_mark(mark) }
    }

    unsafe fn await_mark(&self, mark: Event) -> Result<(), DeviceError> {
        // SAFETY: as the caller promises.
        unsafe { self.inner.await_mark(mark) }
    }

    fn record_event(&self) -> Result<Event, DeviceError> {
        self.inner.record_event()
    }

    unsafe fn seconds_between(&self, first: Event, second: Event) -> Result<f64, DeviceError> {
        // SAFETY: as the caller promises.
        unsafe { self.inner.seconds_between(first, second) }
    }

    fn compiler(&self) -> String {
        self.inner.compiler()
    }
}
