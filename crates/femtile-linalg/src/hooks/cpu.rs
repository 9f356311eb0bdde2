//! Work within the loops of operators on the host, and ranges that hooks may write.
//!
//! Hooks that write rows hand out each block once (`Claims`).

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use femtile_device::{Buffer, Device, Scalar};

use crate::LinalgError;
use crate::vector::sum::{BLOCK, n_blocks};

/// Work on ranges of both vectors of $y = A x$ while they pass through a cache.
///
/// # Contract
/// - Ranges given to `pre` tile `0..n` exactly once. It sees a range before the first read of `x` and the first write of
///   `y` in it, and may change `x` there; `y` still holds what it held before the product.
/// - Ranges given to `post` are the tiles of the operator, `0..`[`MergedOperator::n_tiles`], each exactly once after the
///   last write of `y` in it. They are the same in every product and for any number of threads, so that values
///   kept for each of them do not depend on that number.
/// - Calls come from several threads at once, in any order that the above allows.
///
/// # Source
/// `[kronbichler2022]`, section 5.1.
pub trait MergedHook<T: Scalar>: Sync {
    /// Returns the first entries of the vectors that `pre` reads, so that the loop can prefetch their next rows.
    fn reads(&self) -> Vec<*const T> {
        Vec::new()
    }

    /// Called before `x[rows]` is read.
    fn pre(&self, _rows: Range<usize>, _x: &mut [T], _y: &[T]) {}

    /// Called when `y[rows]` is complete.
    fn post(&self, _tile: usize, _rows: Range<usize>, _x: &[T], _y: &[T]) {}
}

/// An operator that lets work on its vectors happen within its own loop.
///
/// # Safety
/// An implementation must keep the contract of [`MergedHook`] exactly, because hooks write from several
/// threads.
/// # Source
/// `[kronbichler2022]`, section 5.
pub unsafe trait MergedOperator<T: Scalar, D: Device>: Send + Sync {
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

/// The owned rows of a distributed operator that lets work on its vectors happen within its own loop, in two
/// parts. Ghost values of x are exchanged between the parts.
///
/// # Safety
/// As [`MergedOperator`], for both parts together. `begin_merged` calls `pre` for all rows whose x other ranks need, and
/// neither part reads x there before.
/// # Source
/// `[kronbichler2022]`, section 5.3.
pub unsafe trait MergedRows<T: Scalar, D: Device>: Send + Sync {
    /// Number of ranges that `post` is called with.
    fn n_tiles(&self) -> usize;

    /// Calls `hook` before rows that other ranks need, and before others as well.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when `y` or `x` do not fit.
    fn begin_merged(
        &self,
        y: &mut Buffer<T, D>,
        x: &mut Buffer<T, D>,
        hook: &dyn MergedHook<T>,
    ) -> Result<(), LinalgError>;

    /// $y = A (x, g)$ for ghosts $g$ with the other calls of `hook`, after [`MergedRows::begin_merged`] with the same vectors.
    ///
    /// # Errors
    /// [`LinalgError::Length`] when vectors do not fit.
    fn finish_merged(
        &self,
        y: &mut Buffer<T, D>,
        x: &mut Buffer<T, D>,
        ghosts: &Buffer<T, D>,
        hook: &dyn MergedHook<T>,
    ) -> Result<(), LinalgError>;
}

/// Guards blocks of rows that a hook writes; each block may be claimed once. A user's operator might break
/// the contract of [`super::Hook`].
#[derive(Debug)]
pub(crate) struct Claims(Vec<AtomicBool>);

impl Claims {
    /// Creates the guard of `n` rows, none claimed.
    pub fn new(n: usize) -> Self {
        Self((0..n_blocks(n)).map(|_| AtomicBool::new(false)).collect())
    }

    /// Hands out rows, with all of the blocks that they are in.
    ///
    /// # Panics
    /// When an operator has asked for some of them before, or for rows that do not begin with a block.
    pub fn claim(&self, rows: &Range<usize>) {
        let blocks = &self.0[rows.start / BLOCK..rows.end.div_ceil(BLOCK)];
        let is_first = rows.start.is_multiple_of(BLOCK)
            && blocks.iter().all(|block| !block.swap(true, Ordering::Relaxed));
        assert!(is_first, "an operator calls its hook for rows {rows:?} against the contract of hooks");
    }
}
