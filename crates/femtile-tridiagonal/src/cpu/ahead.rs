//! Software prefetch of what comes next.

use femtile_device::Scalar;

use super::LINE;
use femtile_device::cpu::vector::prefetch;

/// Pieces of memory of the bands and the right side, without gaps in them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch<T> {
    arrays: [*const T; 4],
    /// Values of a piece, from one piece to the next, and how many pieces there are.
    piece: usize,
    stride: usize,
    n_pieces: usize,
}

impl<T: Scalar> Stretch<T> {
    /// Nothing to prefetch.
    pub const NOTHING: Self = Self { arrays: [std::ptr::null(); 4], piece: 0, stride: 0, n_pieces: 0 };

    /// `n_pieces` pieces of `piece` values of each array, `stride` values apart.
    pub fn new(arrays: [*const T; 4], [piece, stride, n_pieces]: [usize; 3]) -> Self {
        Self { arrays, piece, stride, n_pieces: if piece == 0 { 0 } else { n_pieces } }
    }
}

/// Lines of the cache that come next, in the order of memory of the bands and the right side at once: the processor
/// reads ahead of itself where several long streams go on side by side.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ahead<T> {
    now: Stretch<T>,
    then: Stretch<T>,
    reached: usize,
}

impl<T: Scalar> Ahead<T> {
    /// Prefetches `now`, and `then`.
    pub fn new(now: Stretch<T>, then: Stretch<T>) -> Self {
        let mut ahead = Self { now, then, reached: 0 };
        if now.n_pieces == 0 {
            ahead.turn_over();
        }
        ahead
    }

    /// Passes over steps of one line whose lines were prefetched before.
    pub fn skip(mut self, steps: usize) -> Self {
        for _ in 0..steps {
            if self.now.n_pieces > 0 {
                self.go_on(1);
            }
        }
        self
    }

    /// Prefetches some cache lines of each array.
    #[inline(always)]
    pub fn step(&mut self, lines: usize) {
        if self.now.n_pieces == 0 {
            return;
        }
        for array in self.now.arrays {
            for k in 0..lines {
                prefetch(array.wrapping_add(self.reached + k * (LINE / size_of::<T>())));
            }
        }
        self.go_on(lines);
    }

    #[inline(always)]
    fn go_on(&mut self, lines: usize) {
        self.reached += lines * (LINE / size_of::<T>());
        if self.reached >= self.now.piece && self.now.n_pieces > 0 {
            self.end_piece();
        }
    }

    #[inline(always)]
    fn end_piece(&mut self) {
        self.reached = 0;
        self.now.n_pieces -= 1;
        let stride = self.now.stride;
        self.now.arrays = self.now.arrays.map(
            #[inline(always)]
            |array| array.wrapping_add(stride),
        );
        if self.now.n_pieces == 0 {
            self.turn_over();
        }
    }

    #[inline(always)]
    fn turn_over(&mut self) {
        self.now = self.then;
        self.then = Stretch::NOTHING;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_passed_over_are_those_that_so_many_steps_prefetch() {
        let at = |address| [std::ptr::without_provenance::<f64>(address); 4];
        let now = Stretch::new(at(64_000), [20, 100, 3]);
        let then = Stretch::new(at(640_000), [8, 50, 2]);
        let mut stepped = Ahead::new(now, then);
        for steps in 0..20 {
            let skipped = Ahead::new(now, then).skip(steps);
            let place = |ahead: &Ahead<f64>| (ahead.now.n_pieces, ahead.now.arrays[0], ahead.reached);
            assert_eq!(place(&skipped), place(&stepped), "{steps} steps");
            stepped.step(1);
        }
        assert_eq!(stepped.now.n_pieces, 0);
    }
}
