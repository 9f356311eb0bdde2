/// What can go wrong on a device.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// Host and device arrays of different length met in a copy.
    #[error("{field}: copy between {expected} and {found} values; make both the same length")]
    LengthMismatch {
        /// Which argument.
        field: &'static str,
        /// Length of the destination.
        expected: usize,
        /// Length of the source.
        found: usize,
    },
    /// The worker threads of a CPU device could not be started.
    #[error("cannot start {threads} worker threads: {reason}; ask for fewer with `threads`")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the operating system said.
        reason: String,
    },
    /// A SIMD level was forced that this processor lacks.
    #[error("FEMTILE_SIMD={requested} is not available here; this processor offers: {available}")]
    SimdUnavailable {
        /// The level that was asked for.
        requested: String,
        /// The levels that can be had.
        available: String,
    },
    /// A device was asked for that is not there.
    #[error("device `{requested}` is not available: {reason}")]
    Absent {
        /// The device asked for.
        requested: String,
        /// Why it cannot be had and what to do.
        reason: String,
    },
    /// A call of the GPU's driver failed.
    #[error("{action} failed: {message}")]
    Driver {
        /// What was being done.
        action: &'static str,
        /// What the driver said.
        message: String,
    },
    /// The GPU has not the memory that was asked for.
    #[error(
        "{device} is out of memory: {needed} bytes were needed, {free} of {total} are free; use a smaller mesh, \
         close what else uses the GPU, or solve with `cpu`"
    )]
    OutOfMemory {
        /// Which GPU.
        device: String,
        /// Bytes asked for.
        needed: usize,
        /// Bytes free.
        free: usize,
        /// Bytes there are.
        total: usize,
    },
    /// A kernel did something that it must not, and the GPU has stopped.
    #[error(
        "a kernel failed: {kernels}: {message}; run again with FEMTILE_CUDA_BLOCKING=1 to learn which launch it \
         was, and please report it"
    )]
    Fault {
        /// Which kernel, as far as it is known.
        kernels: String,
        /// What the driver said.
        message: String,
    },
    /// A kernel could not be started.
    #[error("kernel {kernel} with {launch} could not be started: {message}")]
    Launch {
        /// Which kernel.
        kernel: String,
        /// Grid, block and shared memory.
        launch: String,
        /// What the driver said.
        message: String,
    },
    /// A kernel could not be compiled.
    #[error("kernels of {program} could not be compiled: {message}")]
    Compile {
        /// The program and what it was specialised with.
        program: String,
        /// What the compiler said.
        message: String,
    },
    /// An array of one device was handed to another.
    #[error("argument {argument} of {kernel} is not on {device}; copy it there first")]
    OtherDevice {
        /// Which kernel.
        kernel: &'static str,
        /// Which argument, counted from 0.
        argument: usize,
        /// The device that was to work on it.
        device: String,
    },
}
