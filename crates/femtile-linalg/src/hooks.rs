//! Work that rides on the passes of an operator while its data is in cache.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use femtile_device::{Buffer, Device, Scalar};

use crate::LinalgError;
use crate::vector::sum::{BLOCK, block_dot, combine, n_blocks};

/// What an operator calls around ranges of rows of $y = A x$.
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

    /// The same work for kernels on a GPU; none where there is only a body for the CPU.
    fn cuda(&self) -> Option<CudaHook> {
        None
    }
}

/// Work on ranges of both vectors of $y = A x$ while they pass through a cache.
///
/// # Contract
/// - Ranges given to `pre` tile `0..n` exactly once. It sees a range before the first read of `x` and the first write of
///   `y` in it, and may change `x` there; `y` still holds what it held before the product.
/// - Ranges given to `post` are the tiles of the operator, `0..`[`MergedOperator::n_tiles`], each exactly once after the
///   last write of `y` in it. They are the same in every product and for any number of threads, so that what is kept for
///   each of them does not depend on that number.
/// - Calls come from several threads at once, in any order that the above allows.
///
/// # Source
/// `[kronbichler2022]`, section 5.1.
pub trait MergedHook<T: Scalar>: Sync {
    /// Where vectors begin that `pre` reads, so that the loop can ask for their next rows ahead of time.
    fn reads(&self) -> Vec<*const T> {
        Vec::new()
    }

    /// Called before `x[rows]` is read.
    fn pre(&self, _rows: Range<usize>, _x: &mut [T], _y: &[T]) {}

    /// Called when `y[rows]` is complete.
    fn post(&self, _tile: usize, _rows: Range<usize>, _x: &[T], _y: &[T]) {}
}

impl<T: Scalar> MergedHook<T> for NoHook {}

/// An operator that lets work on its vectors happen within its own loop.
///
/// # Source
/// `[kronbichler2022]`, section 5.
pub trait MergedOperator<T: Scalar, D: Device>: Send + Sync {
    /// Number of ranges that `post` is called with.
    fn n_tiles(&self) -> usize;

    /// $y = A x$ with `hook` called around ranges of rows as [`MergedHook`] promises.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `y` or `x` do not fit.
    fn apply_merged(
        &self,
        y: &mut Buffer<T, D>,
        x: &mut Buffer<T, D>,
        hook: &dyn MergedHook<T>,
    ) -> Result<(), LinalgError>;
}

/// A hook as kernels on a GPU see it: a structure that is compiled into the kernel and passed by value.
///
/// # Contract
/// `source` defines `struct Hook` with 64-bit fields and `__device__` methods `bool is_idle() const` (the same
/// answer in all threads; the kernel then does nothing), `void post(u64 row, const T* x, T y)` (called by one thread
/// once for each row, after `y` was computed) and `void finish()` (called by all threads of a block at the end).
/// A kernel has threads in a line and at most one block for each [`CudaHook::ROWS`] rows, begun.
///
/// Where `is_product`, all that the hook wants is $x^\mathsf{T} y$, and an operator may give parts of it in place of rows, by
/// `void add(double part)`, in as many kernels as it likes: the last two fields then say how many blocks the kernels before
/// have, and how many there are in all of them ([`CudaHook::in_part`]).
#[derive(Debug, Clone, PartialEq)]
pub struct CudaHook {
    /// The definition of `struct Hook`; the kernel has included `femtile.cuh` before.
    pub source: &'static str,
    /// The fields, in order.
    pub arguments: Vec<u64>,
    /// Whether parts of $x^\mathsf{T} y$ serve as well as rows.
    pub is_product: bool,
}

impl CudaHook {
    /// Rows that a block of threads takes at least.
    pub const ROWS: usize = 64;

    /// The fields for a kernel that comes after kernels of `n_before` blocks, of `n_blocks` in all; where rows are wanted, as
    /// they are.
    pub fn in_part(&self, n_before: usize, n_blocks: usize) -> Vec<u64> {
        let mut fields = self.arguments.clone();
        if let Some(part) = fields.last_chunk_mut().filter(|_| self.is_product) {
            *part = [n_before as u64, n_blocks as u64];
        }
        fields
    }
}

/// The hook that does nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoHook;

impl<T: Scalar> Hook<T> for NoHook {
    fn cuda(&self) -> Option<CudaHook> {
        Some(CudaHook { source: include_str!("no_hook.cuh"), arguments: vec![0], is_product: false })
    }
}

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
