use std::sync::atomic::{AtomicU64, Ordering};

/// The power of two next below the length of the first residual of a solve, as [`Preconditioner::expect`](crate::Preconditioner)
/// is told it: vectors are divided by it on the way to single precision, which changes no digit. One until it is told.
///
/// Later residuals are shorter by as much as a solve reduces them, which single precision holds; their own length would have the
/// host wait for a sum in every cycle.
#[derive(Debug)]
pub struct ResidualSize(AtomicU64);

impl Default for ResidualSize {
    fn default() -> Self {
        Self(AtomicU64::new(1.0_f64.to_bits()))
    }
}

impl ResidualSize {
    /// What it is from now on, by a length.
    pub fn set(&self, length: f64) {
        let size = if length.is_normal() { 2.0_f64.powi(length.log2().floor() as i32) } else { 1.0 };
        self.0.store(size.to_bits(), Ordering::Relaxed);
    }

    /// What vectors are to be divided by.
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}
