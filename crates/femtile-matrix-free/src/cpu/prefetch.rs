//! Software prefetch of the next rows during computation.

use std::ops::Range;

use femtile_device::cpu::vector::prefetch;

/// Prefetches rows of some vectors, a few cache lines per step: the processor has few line-fill buffers, and further
/// requests would stall it.
#[derive(Debug)]
pub(super) struct Prefetch<T> {
    /// Start of each vector.
    vectors: Vec<*const T>,
    rows: Range<usize>,
    lines_a_step: usize,
}

impl<T> Prefetch<T> {
    pub fn new(vectors: Vec<*const T>) -> Self {
        Self { vectors, rows: 0..0, lines_a_step: 0 }
    }

    /// Starts prefetching other rows, spread over about `steps` steps.
    pub fn begin(&mut self, rows: Range<usize>, steps: usize) {
        self.lines_a_step = rows.len().div_ceil(Self::ROWS_OF_LINE).div_ceil(steps);
        self.rows = rows;
    }

    /// Prefetches the next lines.
    #[inline(always)]
    pub fn step(&mut self) {
        for _ in 0..self.lines_a_step {
            if self.rows.is_empty() {
                return;
            }
            self.vectors.iter().for_each(|vector| prefetch(vector.wrapping_add(self.rows.start)));
            self.rows.start += Self::ROWS_OF_LINE;
        }
    }

    const ROWS_OF_LINE: usize = 64 / size_of::<T>();
}
