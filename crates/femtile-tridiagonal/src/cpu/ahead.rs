//! Software prefetch of the next panel.

use femtile_device::Scalar;

use super::LINE;
use femtile_device::cpu::vector::prefetch;

/// Lines of the cache that come next, in the order of memory of the bands and the right side at once: the processor
/// reads ahead of itself where several long streams go on side by side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ahead<T> {
    arrays: [*const T; 4],
    reached: usize,
    /// Values of a piece, from one piece to the next, and how many pieces there are.
    piece: usize,
    stride: usize,
    n_pieces: usize,
}

impl<T: Scalar> Ahead<T> {
    /// Prefetches nothing.
    pub const NOTHING: Self =
        Self { arrays: [std::ptr::null(); 4], reached: 0, piece: 0, stride: 0, n_pieces: 0 };

    /// Prefetches `n_pieces` pieces of `piece` values of each array, `stride` values apart.
    pub fn new(arrays: [*const T; 4], [piece, stride, n_pieces]: [usize; 3]) -> Self {
        Self { arrays, reached: 0, piece, stride, n_pieces }
    }

    /// Prefetches a cache line of each array.
    #[inline(always)]
    pub fn step(&mut self) {
        if self.n_pieces == 0 {
            return;
        }
        for array in self.arrays {
            prefetch(array.wrapping_add(self.reached));
        }
        self.reached += LINE / size_of::<T>();
        if self.reached >= self.piece {
            self.reached = 0;
            self.n_pieces -= 1;
            self.arrays = self.arrays.map(
                #[inline(always)]
                |array| array.wrapping_add(self.stride),
            );
        }
    }
}
