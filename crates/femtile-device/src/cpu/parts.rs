//! Fixed shares of an index range, one for each thread.

use std::marker::PhantomData;
use std::ops::Range;

use super::Cpu;

impl Cpu {
    /// Runs `work` on contiguous ranges that tile `0..n`, range `t` of `threads` always on thread `t`.
    ///
    /// No range except the last is shorter than `min_len`; below twice that, all is one range and no thread
    /// is woken. The assignment of indices to threads depends on `n` alone. So memory that was first touched
    /// in such a loop is near the core that uses it later.
    pub fn for_ranges(&self, n: usize, min_len: usize, work: impl Fn(Range<usize>) + Sync) {
        let parts = (n / min_len.max(1)).clamp(1, self.threads());
        if parts == 1 {
            return work(0..n);
        }
        self.inner.workers.run(&|t| {
            if t < parts {
                work(n * t / parts..n * (t + 1) / parts);
            }
        });
    }

    /// Runs `work(t)` for every `t` below the number of threads, each on its own thread.
    pub fn for_threads(&self, work: impl Fn(usize) + Sync) {
        self.inner.workers.run(&work);
    }
}

/// A slice that several threads write at once, in disjoint ranges.
#[derive(Debug)]
pub struct SharedMut<'a, T> {
    pointer: *mut T,
    len: usize,
    slice: PhantomData<&'a mut [T]>,
}

// SAFETY: it represents a `&mut [T]`, whose elements may be sent to other threads; the one method
// that gives access leaves the exclusion of overlapping ranges to its caller.
unsafe impl<T: Send> Sync for SharedMut<'_, T> {}

impl<'a, T> SharedMut<'a, T> {
    /// Takes the slice for as long as ranges of it are handed out.
    pub fn new(slice: &'a mut [T]) -> Self {
        Self { pointer: slice.as_mut_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// Number of elements.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The elements of `range`.
    ///
    /// # Safety
    /// No two ranges in use at the same time overlap.
    ///
    /// # Panics
    /// When the range reaches past the end.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "the caller keeps ranges apart")]
    pub unsafe fn range(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: the range lies within the slice, and the caller promises that it is the only one there.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.add(range.start), range.len()) }
    }

    /// The first of `len` elements.
    ///
    /// # Safety
    /// They lie within the slice, and no other thread reads or writes them meanwhile.
    #[inline(always)]
    pub unsafe fn range_unchecked(&self, begin: usize, len: usize) -> *mut T {
        debug_assert!(begin + len <= self.len);
        // SAFETY: the caller promises that the elements exist.
        unsafe { self.pointer.add(begin) }
    }

    /// Returns the address of an element, for prefetching; any index is allowed.
    pub fn address(&self, index: usize) -> *const T {
        self.pointer.wrapping_add(index)
    }

    /// Overwrites one element.
    ///
    /// # Safety
    /// The index lies within the slice, and no other thread reads or writes that element meanwhile.
    #[inline(always)]
    pub unsafe fn write(&self, index: usize, value: T) {
        debug_assert!(index < self.len);
        // SAFETY: the caller promises that the element exists and is ours alone.
        unsafe { self.pointer.add(index).write(value) }
    }
}

/// A slice for reading; other threads may be writing other parts of it.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a, T> {
    pointer: *const T,
    len: usize,
    slice: PhantomData<&'a [T]>,
}

// SAFETY: it represents a `&[T]`; callers promise that nobody writes the elements that they read.
unsafe impl<T: Sync> Sync for Source<'_, T> {}

impl<'a, T> Source<'a, T> {
    /// Reads a slice that nobody writes.
    pub fn new(slice: &'a [T]) -> Self {
        Self { pointer: slice.as_ptr(), len: slice.len(), slice: PhantomData }
    }

    /// Reads a slice that is written at other places meanwhile.
    pub fn of_shared(shared: &'a SharedMut<'_, T>) -> Self {
        Self { pointer: shared.pointer, len: shared.len, slice: PhantomData }
    }

    /// Number of elements.
    #[expect(clippy::len_without_is_empty, reason = "nobody asks")]
    pub fn len(self) -> usize {
        self.len
    }

    /// One element.
    ///
    /// # Safety
    /// It lies within the slice, and nobody writes it meanwhile.
    #[inline(always)]
    pub unsafe fn read(self, index: usize) -> T
    where
        T: Copy,
    {
        debug_assert!(index < self.len);
        // SAFETY: as the caller promises.
        unsafe { *self.pointer.add(index) }
    }

    /// The elements of a range.
    ///
    /// # Safety
    /// Nobody writes them while they are borrowed.
    ///
    /// # Panics
    /// When the range reaches past the end.
    #[inline(always)]
    pub unsafe fn range(self, range: Range<usize>) -> &'a [T] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: the range lies within the slice, and nobody writes it, as the caller promises.
        unsafe { std::slice::from_raw_parts(self.pointer.add(range.start), range.len()) }
    }

    /// Returns the address of an element, for prefetching; any index is allowed.
    #[inline(always)]
    pub fn address(self, index: usize) -> *const T {
        self.pointer.wrapping_add(index)
    }
}
