//! Host memory in large pages.
//!
//! The program takes its arrays from `LargePages`: long ones ask for pages of 2 MiB. With pages of 4 KiB, threads
//! that fill an array wait for each other's page faults. The first write to a page of zeros that was read before
//! also interrupts all cores.

use std::alloc::{GlobalAlloc, Layout, System};

use crate::{DeviceError, Element};

/// Arrays from this size on ask for large pages.
const LARGE: usize = 4 << 20;

/// Returns `len` zeros, in large pages if the array is long and the system offers them on request.
///
/// The memory is not touched here: a page is placed near the core that first writes to it. With pages of 4
/// KiB a sweep over long arrays loses time to address translation (a CSR product 6 %, as measured), and each
/// page costs a fault at its first write.
pub fn zeroed_vec<T: Element>(len: usize) -> Vec<T> {
    let values = vec![T::zeroed(); len];
    advise_large_pages(values.as_ptr().addr(), size_of_val(values.as_slice()));
    values
}

/// Returns `len` zeros as [`zeroed_vec`] does, for arrays that a program can do without.
///
/// # Errors
/// [`DeviceError::HostMemory`] if the system has no memory for them.
pub fn try_zeroed_vec<T: Element>(len: usize) -> Result<Vec<T>, DeviceError> {
    let needed = len.saturating_mul(size_of::<T>());
    let values: Vec<T> =
        bytemuck::allocation::try_zeroed_vec(len).map_err(|()| DeviceError::HostMemory { needed })?;
    advise_large_pages(values.as_ptr().addr(), needed);
    Ok(values)
}

/// The allocator of the system, which asks for large pages for all arrays of 4 MiB and more.
///
/// A program installs it by `#[global_allocator]`. Then a long array costs one fault per 2 MiB instead of one
/// per 4 KiB. With 16 threads, faults wait for each other, and first writes to pages of zeros interrupt all
/// cores. With small pages, the faults then cost more than the arithmetic of a stage that runs once.
#[derive(Debug, Clone, Copy, Default)]
pub struct LargePages;

// SAFETY: every call is handed to the allocator of the system unchanged; the advice given for what it returns neither
// allocates, nor unwinds, nor changes what the memory contains.
unsafe impl GlobalAlloc for LargePages {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`, which is that of `System`.
        advised(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as for `alloc`.
        advised(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `System` with this layout, because all of ours do.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: `pointer` came from `System` with this layout; the caller vouches for the new size.
        advised(unsafe { System.realloc(pointer, layout, new_size) }, new_size)
    }
}

/// Requests large pages for allocated memory.
fn advised(pointer: *mut u8, n_bytes: usize) -> *mut u8 {
    if !pointer.is_null() {
        advise_large_pages(pointer.addr(), n_bytes);
    }
    pointer
}

/// Zeros aligned to a cache line, so that no SIMD vector of them crosses two lines.
#[derive(Debug)]
pub struct Aligned<T> {
    values: Vec<T>,
    begin: usize,
    len: usize,
}

impl<T: Element> Aligned<T> {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        const LINE: usize = 64;
        let values: Vec<T> = zeroed_vec(len + LINE / size_of::<T>());
        let begin = values.as_ptr().align_offset(LINE);
        Self { values, begin, len }
    }
}

impl<T> std::ops::Deref for Aligned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.values[self.begin..self.begin + self.len]
    }
}

impl<T> std::ops::DerefMut for Aligned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values[self.begin..self.begin + self.len]
    }
}

#[cfg(target_os = "linux")]
fn advise_large_pages(begin: usize, n_bytes: usize) {
    const PAGE: usize = 4096;
    if n_bytes < LARGE {
        return;
    }
    let (first, last) = (begin.next_multiple_of(PAGE), (begin + n_bytes) / PAGE * PAGE);
    // SAFETY: the range lies within an allocation that we hold, and this advice does not change what
    // it contains. A refusal is harmless, so the result does not matter.
    unsafe {
        libc::madvise(first as *mut libc::c_void, last - first, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_large_pages(_begin: usize, _n_bytes: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aligned_values_begin_with_a_line() {
        for n in [0, 1, 7, 100, 1 << 20] {
            let mut values = Aligned::<f32>::zeros(n);
            values.fill(1.0);
            assert!(values.len() == n && values.as_ptr().addr().is_multiple_of(64));
        }
    }

    #[test]
    fn long_arrays_of_the_allocator_keep_their_values_while_they_grow() {
        let layout = |n| Layout::from_size_align(n, 8).unwrap();
        // SAFETY: each pointer is used within its size, with the layout that it was allocated with, until it is freed.
        unsafe {
            let pointer = LargePages.alloc_zeroed(layout(LARGE + 3));
            assert!((0..LARGE + 3).all(|i| *pointer.add(i) == 0));
            pointer.add(LARGE).write(7);
            let grown = LargePages.realloc(pointer, layout(LARGE + 3), 3 * LARGE);
            grown.add(3 * LARGE - 1).write(9);
            assert_eq!((*grown, *grown.add(LARGE)), (0, 7));
            LargePages.dealloc(grown, layout(3 * LARGE));
        }
    }

    #[test]
    fn vectors_have_the_length_asked_for_and_are_zero() {
        for n in [0, 1, 1023, LARGE / 8 - 1, LARGE / 8, LARGE + 1] {
            let zeros = zeroed_vec::<f64>(n);
            assert!(zeros.len() == n && zeros.iter().all(|&x| x == 0.0));
        }
    }
}
