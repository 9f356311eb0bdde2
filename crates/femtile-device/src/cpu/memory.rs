//! Host memory in large pages.

use crate::Element;

/// Arrays from this size on ask for large pages.
const LARGE: usize = 4 << 20;

/// `len` zeros, in large pages where the system offers them on request and the array is long.
///
/// The memory is not touched here: a page comes to be near the core that first writes to it. With
/// pages of 4 KiB a sweep over long arrays loses time to address translation, and the processor's
/// prefetching ends at every page.
pub fn zeroed_vec<T: Element>(len: usize) -> Vec<T> {
    let values = vec![T::zeroed(); len];
    if size_of_val(values.as_slice()) >= LARGE {
        advise_large_pages(&values);
    }
    values
}

#[cfg(target_os = "linux")]
fn advise_large_pages<T>(values: &[T]) {
    const PAGE: usize = 4096;
    let begin = values.as_ptr() as usize;
    let (first, last) = (begin.next_multiple_of(PAGE), (begin + size_of_val(values)) / PAGE * PAGE);
    // SAFETY: the range lies within an allocation that we hold, and this advice does not change what
    // it contains. A refusal is harmless, so the result does not matter.
    unsafe {
        libc::madvise(first as *mut libc::c_void, last - first, libc::MADV_HUGEPAGE);
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_large_pages<T>(_values: &[T]) {}
