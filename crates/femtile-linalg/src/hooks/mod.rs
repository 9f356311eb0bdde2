//! Work that rides on the passes of an operator while its data is in cache.
//!
//! A hook is a struct, because a closure cannot enter a CUDA kernel; `Hook::cuda` returns its CUDA source and
//! fields. `pre` sees a range before its first read, `post` after its last write. The ranges cover every row
//! exactly once. Conjugate gradients take pᵀAp in the `post` of their product. A GPU operator that computes parts
//! of pᵀAp itself (`CudaHook::is_product`) saves a pass over both vectors. More: `docs/developers/high-order.md`.

#[allow(unsafe_code)]
mod cpu;
#[allow(unsafe_code)]
mod cuda;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use femtile_device::{Buffer, Reference, Scalar};

use crate::LinalgError;
use crate::vector::sum::{BLOCK, block_dot, combine, n_blocks};
pub(crate) use cpu::Claims;
pub use cpu::{MergedHook, MergedOperator, MergedRows};
pub use cuda::CudaHook;

/// Callbacks of an operator around ranges of rows of $y = A x$.
///
/// # Contract
/// - The ranges given to `pre` tile `0..n` exactly once, and so do those given to `post`.
/// - `pre` sees a range before the first read of `x` in it, `post` after the last write of `y` in it.
/// - Ranges of `post` begin at multiples of [`BLOCK`] and are at most that long, so that sums over
///   them do not depend on the number of threads.
/// - Calls come from several threads at once, never twice for one range.
///
/// # Source
/// `[kronbichler2022]`, section 3: operations before and after the cell loop.
pub trait Hook<T: Scalar>: Sync {
    /// Called before the first read of `x[rows]`.
    fn pre(&self, _rows: Range<usize>) {}

    /// Called after the last write of `y[rows]`; `x` and `y` are those ranges of the two vectors.
    fn post(&self, _rows: Range<usize>, _x: &[T], _y: &[T]) {}

    /// The same work for kernels on a GPU; none if there is only a body for the CPU.
    fn cuda(&self) -> Option<CudaHook<'_>> {
        None
    }
}

/// Calls `product`, which computes $y = A x$ in plain loops, between the calls that [`Hook`] promises. The
/// hook is not called if $A$ is not square.
///
/// # Errors
/// Those of `product`.
pub fn hook_rows<T: Scalar>(
    hook: &dyn Hook<T>,
    y: &mut Buffer<T, Reference>,
    x: &Buffer<T, Reference>,
    product: impl FnOnce(&mut Buffer<T, Reference>) -> Result<(), LinalgError>,
) -> Result<(), LinalgError> {
    let n = y.len();
    if x.len() != n {
        return product(y);
    }
    hook.pre(0..n);
    product(y)?;
    for start in (0..n).step_by(BLOCK) {
        let rows = start..(start + BLOCK).min(n);
        hook.post(rows.clone(), &x.as_slice()[rows.clone()], &y.as_slice()[rows]);
    }
    Ok(())
}

/// The hook that does nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoHook;

impl<T: Scalar> Hook<T> for NoHook {
    fn cuda(&self) -> Option<CudaHook<'_>> {
        Some(CudaHook::none())
    }
}

impl<T: Scalar> MergedHook<T> for NoHook {}

/// Sums $x^\mathsf{T} y$ while `y = A x` is computed, with the same bits for any number of threads.
#[derive(Debug)]
pub struct DotHook {
    partials: Vec<AtomicU64>,
}

impl DotHook {
    /// A sum over vectors of `n` entries.
    pub fn new(n: usize) -> Self {
        Self { partials: (0..n_blocks(n)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The sum, once the operator has been applied.
    pub fn sum(&self) -> f64 {
        let partials: Vec<f64> =
            self.partials.iter().map(|bits| f64::from_bits(bits.load(Ordering::Relaxed))).collect();
        combine(&partials)
    }
}

impl<T: Scalar> Hook<T> for DotHook {
    fn post(&self, rows: Range<usize>, x: &[T], y: &[T]) {
        let partial = block_dot(x, y);
        self.partials[rows.start / BLOCK].store(partial.to_bits(), Ordering::Relaxed);
    }
}
