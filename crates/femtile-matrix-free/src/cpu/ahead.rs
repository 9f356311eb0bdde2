//! Asks for rows that come next while there is work to do.

use std::ops::Range;

use femtile_device::cpu::vector::prefetch;

/// Rows of some vectors that are soon read, asked for a few lines of the cache at a time: a processor waits for as few
/// lines at once, and what is asked for beyond stops it.
#[derive(Debug)]
pub(super) struct Ahead<T> {
    /// Where vectors begin.
    vectors: Vec<*const T>,
    rows: Range<usize>,
    lines_a_step: usize,
}

impl<T> Ahead<T> {
    pub fn new(vectors: Vec<*const T>) -> Self {
        Self { vectors, rows: 0..0, lines_a_step: 0 }
    }

    /// Begins with other rows, which about `steps` steps are to ask for.
    pub fn begin(&mut self, rows: Range<usize>, steps: usize) {
        self.lines_a_step = rows.len().div_ceil(Self::ROWS_OF_LINE).div_ceil(steps);
        self.rows = rows;
    }

    /// Asks for the next lines.
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
