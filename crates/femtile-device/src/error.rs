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
}
