//! Writes past the cache: a line that is written whole need not be read before.

use femtile_device::Scalar;

use super::LINE;
use femtile_device::cpu::vector::Vector;

/// Returns whether all rows from `start` on, `stride` apart, begin lines of the cache.
#[inline(always)]
pub(crate) fn is_aligned<T>(u: *const T, start: usize, stride: usize) -> bool {
    (u as usize + start * size_of::<T>()).is_multiple_of(LINE)
        && (stride * size_of::<T>()).is_multiple_of(LINE)
}

/// Copies `count` values past the cache, but for the ends that share lines with others.
///
/// # Safety
/// The values can be read and written; the processor has the instructions.
#[inline(always)]
pub(crate) unsafe fn stream_copy<T: Scalar, V: Vector<T>>(from: *const T, to: *mut T, count: usize) {
    let head = (to.align_offset(LINE)).min(count);
    let step = LINE / size_of::<T>();
    let whole = head + (count - head) / step * step;
    // SAFETY: the caller's promises; from `head` on `to` begins lines of the cache.
    unsafe {
        for k in (0..head).chain(whole..count) {
            *to.add(k) = *from.add(k);
        }
        for k in (head..whole).step_by(V::LANES) {
            V::load(from.add(k)).stream(to.add(k));
        }
    }
}
