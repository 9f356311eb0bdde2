/// An error of a device.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// Host and device arrays of a copy have different lengths.
    #[error("{field}: copy between {expected} and {found} values; both must have the same length")]
    LengthMismatch {
        /// The argument.
        field: &'static str,
        /// Length of the destination.
        expected: usize,
        /// Length of the source.
        found: usize,
    },
    /// The worker threads of a CPU device could not be started.
    #[error("cannot start {threads} worker threads: {reason}; ask for fewer with `threads`")]
    Threads {
        /// The number requested.
        threads: usize,
        /// The message of the operating system.
        reason: String,
    },
    /// A SIMD level was forced that this processor lacks.
    #[error("FEMTILE_SIMD={requested} is not available here; this processor offers: {available}")]
    SimdUnavailable {
        /// The level that was asked for.
        requested: String,
        /// The levels that this processor offers.
        available: String,
    },
    /// The requested device is not available.
    #[error("device `{requested}` is not available: {reason}")]
    Absent {
        /// The device asked for.
        requested: String,
        /// The reason and the remedy.
        reason: String,
    },
    /// A call of the GPU's driver failed.
    #[error("{action} failed: {message}")]
    Driver {
        /// The action that failed.
        action: &'static str,
        /// The message of the driver.
        message: String,
    },
    /// The system has less memory than requested.
    #[error("an array of {needed} bytes cannot be had from the system")]
    HostMemory {
        /// Bytes requested.
        needed: usize,
    },
    /// The GPU has less free memory than requested.
    #[error(
        "{device} is out of memory: {needed} bytes were needed, {free} of {total} are free; use a smaller mesh, \
         close what else uses the GPU, or solve with `cpu`"
    )]
    OutOfMemory {
        /// The GPU.
        device: String,
        /// Bytes requested.
        needed: usize,
        /// Bytes free.
        free: usize,
        /// Bytes in total.
        total: usize,
    },
    /// A kernel made an invalid access, and the GPU has stopped.
    #[error(
        "a kernel failed: {kernels}: {message}; run again with FEMTILE_CUDA_BLOCKING=1 to learn which launch it \
         was, and please report it"
    )]
    Fault {
        /// The kernels that may have caused it.
        kernels: String,
        /// The message of the driver.
        message: String,
    },
    /// A kernel could not be started.
    #[error("kernel {kernel} with {launch} could not be started: {message}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// Grid, block and shared memory.
        launch: String,
        /// The message of the driver.
        message: String,
    },
    /// A kernel could not be compiled.
    #[error("kernels of {program} could not be compiled: {message}")]
    Compile {
        /// The program and what it was specialised with.
        program: String,
        /// The message of the compiler.
        message: String,
    },
    /// An argument of a kernel is on another device.
    #[error("argument {argument} of {kernel} is not on {device}; copy it there first")]
    OtherDevice {
        /// The kernel.
        kernel: &'static str,
        /// The number of the argument, counted from 0.
        argument: usize,
        /// The device of the kernel.
        device: String,
    },
}
