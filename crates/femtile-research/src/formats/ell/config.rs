use femtile::linalg::LinalgError;

/// The layout of a matrix in ELLPACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EllConfig {
    /// Threads that share a row on a GPU: 1, 2, 4, 8, 16 or 32.
    pub threads_per_row: usize,
    /// Whether the length of each row is kept, so that its padding is not read.
    pub lengths: bool,
}

impl Default for EllConfig {
    /// One thread a row, with lengths: ELLPACK-R.
    fn default() -> Self {
        Self { threads_per_row: 1, lengths: true }
    }
}

impl EllConfig {
    /// Plain ELLPACK: one thread a row, all of the padding read.
    pub const PLAIN: Self = Self { threads_per_row: 1, lengths: false };

    pub(super) fn check(self) -> Result<(), LinalgError> {
        let threads = self.threads_per_row;
        if threads.is_power_of_two() && threads <= 32 {
            return Ok(());
        }
        let message = format!("{threads} threads cannot share a row: choose 1, 2, 4, 8, 16 or 32");
        Err(LinalgError::Setting { field: "threads_per_row", message })
    }
}
