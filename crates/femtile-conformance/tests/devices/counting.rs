//! An emulated GPU that counts what it is asked for, and fails after a number of launches, as a real one does when a kernel
//! has faulted.

use std::sync::atomic::{AtomicUsize, Ordering};

use femtile::device::DeviceError;
use femtile::device::cuda::{
    Driver, Event, Function, Graph, Launch, PendingCopy, Properties, Specialisation,
};
use femtile_conformance::emulator::Emulator;

/// An emulator with counts.
#[derive(Debug)]
pub struct Counting {
    inner: Emulator,
    /// Launches and replays that are carried out before nothing is any more.
    after: usize,
    /// Launches and replays.
    pub n_done: AtomicUsize,
    /// Times that the host has waited for values.
    pub n_waits: AtomicUsize,
    /// Copies from the host.
    pub n_uploads: AtomicUsize,
    /// Arrays made.
    pub n_arrays: AtomicUsize,
}

impl Counting {
    /// Counts, and fails after so many launches and replays.
    pub fn new(inner: Emulator, after: usize) -> Self {
        let zero = AtomicUsize::default;
        Self { inner, after, n_done: zero(), n_waits: zero(), n_uploads: zero(), n_arrays: zero() }
    }

    fn count(&self) -> Result<(), DeviceError> {
        self.n_done.fetch_add(1, Ordering::Relaxed);
        self.alive()
    }

    fn alive(&self) -> Result<(), DeviceError> {
        match self.n_done.load(Ordering::Relaxed) > self.after {
            true => Err(DeviceError::Fault { kernels: "any".into(), message: "the GPU was lost".into() }),
            false => Ok(()),
        }
    }
}

impl Driver for Counting {
    fn properties(&self) -> &Properties {
        self.inner.properties()
    }

    fn memory_bytes(&self) -> Result<(usize, usize), DeviceError> {
        self.inner.memory_bytes()
    }

    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.n_arrays.fetch_add(1, Ordering::Relaxed);
        self.inner.allocate(bytes)
    }

    unsafe fn free(&self, address: u64) {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.free(address) };
    }

    fn allocate_on_host(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.inner.allocate_on_host(bytes)
    }

    unsafe fn free_on_host(&self, address: u64) {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.free_on_host(address) };
    }

    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.zero(address, bytes) }
    }

    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<(), DeviceError> {
        self.n_uploads.fetch_add(1, Ordering::Relaxed);
        self.alive()?;
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.upload(to, from) }
    }

    unsafe fn download(&self, to: &mut [u8], from: u64) -> Result<(), DeviceError> {
        self.n_waits.fetch_add(1, Ordering::Relaxed);
        self.alive()?;
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.download(to, from) }
    }

    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.copy(to, from, bytes) }
    }

    unsafe fn begin_download(&self, from: u64, bytes: usize) -> Result<PendingCopy, DeviceError> {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.begin_download(from, bytes) }
    }

    fn end_download(&self, transfer: PendingCopy) -> Result<Vec<u8>, DeviceError> {
        self.n_waits.fetch_add(1, Ordering::Relaxed);
        self.alive()?;
        self.inner.end_download(transfer)
    }

    fn function(
        &self,
        program: &Specialisation,
        name: &'static str,
        signature: &[String],
    ) -> Result<Function, DeviceError> {
        self.inner.function(program, name, signature)
    }

    unsafe fn launch(
        &self,
        function: Function,
        launch: &Launch,
        arguments: &[&[u8]],
    ) -> Result<(), DeviceError> {
        self.count()?;
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.launch(function, launch, arguments) }
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.alive()?;
        self.inner.synchronize()
    }

    fn begin_recording(&self) -> Result<(), DeviceError> {
        self.inner.begin_recording()
    }

    fn end_recording(&self) -> Result<Graph, DeviceError> {
        self.inner.end_recording()
    }

    unsafe fn replay(&self, graph: Graph) -> Result<(), DeviceError> {
        self.count()?;
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.replay(graph) }
    }

    unsafe fn forget(&self, graph: Graph) {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.forget(graph) };
    }

    fn record_event(&self) -> Result<Event, DeviceError> {
        self.inner.record_event()
    }

    unsafe fn seconds_between(&self, first: Event, second: Event) -> Result<f64, DeviceError> {
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.seconds_between(first, second) }
    }

    fn compiler(&self) -> String {
        self.inner.compiler()
    }
}
