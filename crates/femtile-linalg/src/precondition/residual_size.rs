use std::sync::atomic::{AtomicU64, Ordering};

/// The largest power of two up to the norm of the initial residual of a solve
/// ([`Preconditioner::set_residual_norm`](crate::Preconditioner::set_residual_norm)). Vectors are divided by
/// it, without rounding, before their conversion to f32. It is 1 until it is set.
///
/// The range of f32 covers the reduction of the residual in a solve. With the norm of each residual instead,
/// the host would wait for a sum in every cycle.
#[derive(Debug)]
pub struct ResidualSize(AtomicU64);

impl Default for ResidualSize {
    fn default() -> Self {
        Self(AtomicU64::new(1.0_f64.to_bits()))
    }
}

impl ResidualSize {
    /// Sets the size from a residual norm.
    pub fn set(&self, length: f64) {
        let size = if length.is_normal() { 2.0_f64.powi(length.log2().floor() as i32) } else { 1.0 };
        self.0.store(size.to_bits(), Ordering::Relaxed);
    }

    /// Returns the number to divide vectors by.
    pub fn get(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }
}
