//! Sequences of launches recorded once and replayed, and copies that the stream does not wait for.
//!
//! `Device::repeat` repeats work: a GPU executes the first round, records the second and replays it.
//! `Device::begin_read` copies a few numbers to the host without stopping the stream. Conjugate gradients replay
//! rounds of eight iterations, with the host one round behind; `CgSolver` replays whole solves. Kernels do nothing
//! after convergence, so at most two rounds of empty kernels are wasted. Conditional nodes of a graph would decide
//! between iterations, which costs more.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{Cuda, CudaMemory, Driver, Graph, PendingCopy};
use crate::DeviceError;

/// The state of [`crate::Device::repeat`] between calls.
///
/// The first call runs the work, which compiles and loads its kernels; the second call records it, and later calls replay
/// the recording. Within the recording of other work, the launches become part of that recording. When an array of a
/// recording is freed, the work is recorded again.
#[derive(Debug, Default)]
pub struct CudaRecording {
    n_calls: usize,
    graph: Option<Recorded>,
}

#[derive(Debug)]
struct Recorded {
    driver: Arc<dyn Driver>,
    device: u64,
    graph: Graph,
    times: usize,
    launches: Arc<Launches>,
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // SAFETY: the graph is one of this driver, and it is forgotten here alone.
        unsafe { self.driver.forget(self.graph) };
    }
}

/// The launches of a recording.
#[derive(Debug, Default)]
struct Launches {
    names: Vec<&'static str>,
    /// All words of all arguments, ascending once the recording has ended; addresses of arrays are among them.
    words: Vec<u64>,
}

impl Launches {
    /// Returns whether an argument may point into an array.
    fn may_touch(&self, address: u64, bytes: usize) -> bool {
        let first = self.words.partition_point(|&word| word < address);
        self.words.get(first).is_some_and(|&word| word - address < bytes as u64)
    }
}

/// The recordings of a device; none is replayed that accesses freed memory.
#[derive(Debug, Default)]
pub(super) struct Recordings(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The launches since the beginning of the current recording, if there is one.
    current: Option<Launches>,
    /// Whether an array was freed meanwhile.
    has_given_back: bool,
    /// Recordings that may be replayed.
    valid: Vec<Weak<Launches>>,
    /// How many hold a [`Unrecorded`] of the device.
    n_unrecorded: usize,
}

/// A GPU that is not recorded as long as this value lives: work is queued each time.
///
/// A recording includes all work that is queued meanwhile. Threads that share the stream of a GPU would
/// record each other's work without running it.
#[derive(Debug)]
pub struct Unrecorded(Cuda);

impl Unrecorded {
    /// Takes a GPU that several threads share from here on.
    pub fn new(device: &Cuda) -> Self {
        device.recordings().state().n_unrecorded += 1;
        Self(device.clone())
    }
}

impl Drop for Unrecorded {
    fn drop(&mut self) {
        self.0.recordings().state().n_unrecorded -= 1;
    }
}

impl Recordings {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a launch to the current recording; returns whether there is one.
    pub fn note(&self, name: &'static str, arguments: &[&[u8]]) -> bool {
        let mut state = self.state();
        let Some(current) = &mut state.current else { return false };
        current.names.push(name);
        for argument in arguments {
            current.words.extend(argument.as_chunks().0.iter().map(|&word| u64::from_ne_bytes(word)));
        }
        true
    }

    /// Invalidates the recordings that may access an array that is freed now.
    pub fn give_up(&self, address: u64, bytes: usize) {
        let mut state = self.state();
        state.has_given_back = true;
        state.valid.retain(|launches| {
            launches.upgrade().is_some_and(|launches| !launches.may_touch(address, bytes))
        });
    }

    fn begin(&self) {
        let mut state = self.state();
        (state.current, state.has_given_back) = (Some(Launches::default()), false);
    }

    /// Ends the recording and returns its launches; none if an array was freed meanwhile.
    fn end(&self) -> Option<Arc<Launches>> {
        let mut state = self.state();
        let mut launches = state.current.take().unwrap_or_default();
        launches.words.sort_unstable();
        launches.words.dedup();
        let launches = Arc::new(launches);
        if state.has_given_back {
            return None;
        }
        state.valid.push(Arc::downgrade(&launches));
        Some(launches)
    }
}

impl Recorded {
    /// Replays `times` rounds and returns true. Returns false if memory that the recording accesses was
    /// freed.
    fn replay(&self, device: &Cuda, times: usize) -> Result<bool, DeviceError> {
        if self.times != times || self.device != device.id() {
            return Ok(false);
        }
        // Locked until the launches are queued, so that memory is freed after them.
        let state = device.recordings().state();
        if !state.valid.iter().any(|valid| std::ptr::eq(valid.as_ptr(), Arc::as_ptr(&self.launches))) {
            return Ok(false);
        }
        // SAFETY: the graph is one of this driver and lives as long as this value; no array that it touches was given
        // back.
        unsafe { self.driver.replay(self.graph) }?;
        drop(state);
        let names = &self.launches.names;
        device.inner.n_launches.fetch_add(names.len() as u64, Ordering::Relaxed);
        let mut recent = device.inner.recent.lock().unwrap_or_else(PoisonError::into_inner);
        names.iter().for_each(|name| recent.push(name));
        Ok(true)
    }
}

impl CudaRecording {
    pub(super) fn repeat<E: From<DeviceError>>(
        &mut self,
        device: &Cuda,
        times: usize,
        work: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let is_recorded = {
            let state = device.recordings().state();
            state.current.is_none() && state.n_unrecorded == 0
        };
        // Within another recording the work becomes part of that.
        if !is_recorded {
            return (0..times).try_for_each(|_| work());
        }
        self.n_calls += 1;
        if self.n_calls == 1 {
            return (0..times).try_for_each(|_| work());
        }
        if let Some(recorded) = &self.graph
            && recorded.replay(device, times)?
        {
            return Ok(());
        }
        self.graph = None;
        self.graph = record(device, times, work)?;
        match &self.graph {
            Some(recorded) if recorded.replay(device, times)? => Ok(()),
            _ => (0..times).try_for_each(|_| work()),
        }
    }
}

/// Records `times` rounds of `work`; the recording is ended also if the work fails. None if the work gives
/// arrays back, so that it cannot be replayed.
fn record<E: From<DeviceError>>(
    device: &Cuda,
    times: usize,
    work: &mut dyn FnMut() -> Result<(), E>,
) -> Result<Option<Recorded>, E> {
    let driver = device.driver().clone();
    driver.begin_recording()?;
    device.recordings().begin();
    let outcome = (0..times).try_for_each(|_| work());
    let graph = driver.end_recording();
    let launches = device.recordings().end();
    outcome?;
    let (graph, is_valid) = (graph?, launches.is_some());
    let launches = launches.unwrap_or_default();
    let recorded = Recorded { driver, device: device.id(), graph, times, launches };
    Ok(is_valid.then_some(recorded))
}

/// A copy to the host that is under way.
#[derive(Debug)]
pub struct CudaReadback {
    device: Cuda,
    transfer: Option<PendingCopy>,
}

impl CudaReadback {
    pub(super) fn begin(device: &Cuda, memory: &CudaMemory, bytes: usize) -> Result<Self, DeviceError> {
        Ok(Self { device: device.clone(), transfer: memory.begin_download(device, bytes)? })
    }

    pub(super) fn end(mut self) -> Result<Vec<u8>, DeviceError> {
        let transfer = self.transfer.take();
        transfer.map_or(Ok(Vec::new()), |transfer| self.device.driver().end_download(transfer))
    }
}

impl Drop for CudaReadback {
    fn drop(&mut self) {
        if let Some(transfer) = self.transfer.take() {
            // The place that the copy goes to must not be used again before it has arrived.
            let _ = self.device.driver().end_download(transfer);
        }
    }
}
