//! The interface to the executor of kernels: an NVIDIA driver or the host emulator.

use std::fmt::Debug;

use super::Specialisation;
use crate::DeviceError;

/// A kernel ready to be launched; its meaning is the driver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Function(pub u64);

/// A recorded sequence of launches; its meaning is the driver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Graph(pub u64);

/// A moment in the stream of work; its meaning is the driver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Event(pub u64);

/// A copy to the host that is under way; its meaning is the driver's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PendingCopy(pub u64);

/// The grid of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Blocks along x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: u32,
}

impl std::fmt::Display for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { grid: [gx, gy, gz], block: [x, y, z], shared_bytes } = self;
        write!(f, "{gx} × {gy} × {gz} blocks of {x} × {y} × {z} threads")?;
        if *shared_bytes > 0 {
            write!(f, " and {shared_bytes} bytes of shared memory")?;
        }
        Ok(())
    }
}

impl Launch {
    /// Returns a one-dimensional grid of `grid` blocks of `block` threads.
    pub fn line(grid: usize, block: u32) -> Self {
        Self { grid: [u32::try_from(grid).unwrap_or(u32::MAX), 1, 1], block: [block, 1, 1], shared_bytes: 0 }
    }

    /// Returns a grid of blocks of `block` threads with one thread for each of `n` items.
    pub fn over(n: usize, block: u32) -> Self {
        Self::line(n.div_ceil(block as usize), block)
    }

    /// Sets the bytes of dynamic shared memory per block.
    pub fn shared(self, bytes: usize) -> Self {
        Self { shared_bytes: u32::try_from(bytes).unwrap_or(u32::MAX), ..self }
    }

    /// Returns whether the grid has no block, so that nothing is launched.
    pub fn is_empty(&self) -> bool {
        self.grid.contains(&0)
    }
}

/// Properties of a GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Properties {
    /// Its name, such as `NVIDIA H200`.
    pub name: String,
    /// Its number among the GPUs of this machine.
    pub ordinal: usize,
    /// Major and minor compute capability: (9, 0) for Hopper.
    pub compute_capability: (u32, u32),
    /// Number of multiprocessors.
    pub n_multiprocessors: usize,
    /// Bytes of memory.
    pub memory_bytes: usize,
    /// Bytes of second-level cache.
    pub l2_bytes: usize,
    /// The newest CUDA version that the driver supports, major and minor.
    pub cuda_version: (u32, u32),
}

impl Properties {
    /// Shared memory that a block may ask for.
    pub fn shared_bytes_per_block(&self) -> usize {
        match self.compute_capability {
            (9 | 10, _) => 227 << 10,
            (8, 0 | 7) => 163 << 10,
            (7, 5) => 64 << 10,
            _ => 99 << 10,
        }
    }
}

/// One GPU with one stream of work, which runs in the order of the calls.
///
/// Methods without a note return at once and leave the work to the stream. Addresses are those of device
/// memory. Methods with addresses or handles are unsafe, because nothing else ensures that these are still
/// valid:
///
/// ```compile_fail,E0133
/// use femtile_device::cuda::{Driver, Graph};
///
/// fn replay(driver: &dyn Driver) {
///     let _ = driver.replay(Graph(1));
/// }
/// ```
pub trait Driver: Debug + Send + Sync {
    /// Returns the properties of the GPU.
    fn properties(&self) -> &Properties;

    /// Returns the free and total bytes of memory at this moment.
    fn memory_bytes(&self) -> Result<(usize, usize), DeviceError>;

    /// Allocates `bytes` bytes (more than zero), aligned to 256, contents undefined.
    ///
    /// # Errors
    /// [`DeviceError::OutOfMemory`] with the bytes requested and free.
    fn allocate(&self, bytes: usize) -> Result<u64, DeviceError>;

    /// Frees memory in the order of the stream.
    ///
    /// # Safety
    /// The address came from [`Driver::allocate`] of this driver, and nothing uses it from now on.
    unsafe fn free(&self, address: u64);

    /// Memory of the host, `bytes` bytes (more than zero) at an address that kernels and copies can use, aligned to
    /// 256, contents undefined.
    fn allocate_on_host(&self, bytes: usize) -> Result<u64, DeviceError>;

    /// Frees memory of the host; waits for the work queued before.
    ///
    /// # Safety
    /// The address came from [`Driver::allocate_on_host`] of this driver, and nothing uses it from now on.
    unsafe fn free_on_host(&self, address: u64);

    /// Sets `bytes` bytes to zero.
    ///
    /// # Safety
    /// They lie within one allocation of this driver.
    unsafe fn zero(&self, address: u64, bytes: usize) -> Result<(), DeviceError>;

    /// Copies from the host; `from` may be reused when this returns.
    ///
    /// # Safety
    /// As many bytes from `to` on lie within one allocation of this driver.
    unsafe fn upload(&self, to: u64, from: &[u8]) -> Result<(), DeviceError>;

    /// Copies to the host and waits for it, hence for all work queued before.
    ///
    /// # Safety
    /// As many bytes from `from` on lie within one allocation of this driver.
    unsafe fn download(&self, to: &mut [u8], from: u64) -> Result<(), DeviceError>;

    /// Copies `bytes` bytes within the device.
    ///
    /// # Safety
    /// Both ranges lie within allocations of this driver, and do not overlap.
    unsafe fn copy(&self, to: u64, from: u64, bytes: usize) -> Result<(), DeviceError>;

    /// Begins a copy to the host at this point of the stream; work queued later continues meanwhile.
    ///
    /// # Safety
    /// The bytes lie within one allocation of this driver.
    unsafe fn begin_download(&self, from: u64, bytes: usize) -> Result<PendingCopy, DeviceError>;

    /// Waits for a transfer and returns its data; each transfer is ended once.
    fn end_download(&self, transfer: PendingCopy) -> Result<Vec<u8>, DeviceError>;

    /// Begins to compile programs that will probably be needed; returns at once.
    fn prepare(&self, _programs: Vec<Specialisation>) {}

    /// Allocates the memory that copies need, ahead of the first copy.
    fn warm_up(&self) {}

    /// Loads a kernel; compiles its program unless it is loaded already.
    ///
    /// `signature` are the C types of its parameters; a driver that can compare them with the source does.
    ///
    /// # Errors
    /// [`DeviceError::Compile`] with the messages of the compiler.
    fn function(
        &self,
        program: &Specialisation,
        name: &'static str,
        signature: &[String],
    ) -> Result<Function, DeviceError>;

    /// Queues a kernel with the bytes of its arguments.
    ///
    /// # Safety
    /// The arguments are those of the kernel's signature, and with them it touches only memory it may touch.
    unsafe fn launch(
        &self,
        function: Function,
        launch: &Launch,
        arguments: &[&[u8]],
    ) -> Result<(), DeviceError>;

    /// Waits for all work queued so far.
    fn synchronize(&self) -> Result<(), DeviceError>;

    /// Waits for all work of this process on the GPU, in every stream.
    fn synchronize_all(&self) -> Result<(), DeviceError> {
        self.synchronize()
    }

    /// Returns the handle of the stream for other libraries; 0 if the driver has none that they know.
    fn stream(&self) -> u64 {
        0
    }

    /// Lets work queued later wait for the work that is in a stream of another library now.
    ///
    /// # Safety
    /// `stream` is a stream of this GPU that exists: its handle, 1 for the legacy default stream or 2 for that of the thread.
    unsafe fn wait_for_stream(&self, _stream: u64) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Lets work that is queued later in a stream of another library wait for all work queued here so far.
    ///
    /// # Safety
    /// As [`Driver::wait_for_stream`].
    unsafe fn hold_stream(&self, _stream: u64) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Lets the GPUs with these numbers read the memory of this one; returns whether they can.
    fn open_to(&self, _ordinals: &[usize]) -> Result<bool, DeviceError> {
        Ok(true)
    }

    /// Makes a mark of a point of the stream for streams of other drivers, to be set any number of times; it is kept until the
    /// process ends.
    fn mark(&self) -> Result<Event, DeviceError> {
        Ok(Event(0))
    }

    /// Sets a mark at this point of the stream.
    ///
    /// # Safety
    /// It came from [`Driver::mark`] of this driver.
    unsafe fn set_mark(&self, _mark: Event) -> Result<(), DeviceError> {
        Ok(())
    }

    /// Makes work that is queued later wait for the point at which a mark was last set.
    ///
    /// # Safety
    /// It came from [`Driver::mark`] of a driver of the same kind in this process.
    unsafe fn await_mark(&self, _mark: Event) -> Result<(), DeviceError> {
        Ok(())
    }

    /// From here on launches are recorded, not performed.
    fn begin_recording(&self) -> Result<(), DeviceError>;

    /// Ends the recording and makes it ready to be replayed.
    fn end_recording(&self) -> Result<Graph, DeviceError>;

    /// Queues all launches of a recording.
    ///
    /// # Safety
    /// The graph came from [`Driver::end_recording`] of this driver and has not been forgotten; all memory that its
    /// launches touch is still allocated.
    unsafe fn replay(&self, graph: Graph) -> Result<(), DeviceError>;

    /// Forgets a recording.
    ///
    /// # Safety
    /// The graph came from [`Driver::end_recording`] of this driver and has not been forgotten before.
    unsafe fn forget(&self, graph: Graph);

    /// Marks this point of the stream.
    fn record_event(&self) -> Result<Event, DeviceError>;

    /// Waits for the second event and gives the seconds between the two; both are forgotten.
    ///
    /// # Safety
    /// Both are different ones that came from [`Driver::record_event`] of this driver and have not been forgotten before.
    unsafe fn seconds_between(&self, first: Event, second: Event) -> Result<f64, DeviceError>;

    /// Returns the name of the compiler, `NVRTC 13.0 (/path)`, or the reason why there is none, for reports.
    fn compiler(&self) -> String;
}
