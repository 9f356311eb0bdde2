use std::ops::Range;

use femtile_device::Scalar;

use crate::tridiagonal::cpu::panel::{Rows, RowsMut};
use crate::tridiagonal::cpu::sweep::Elimination;
use crate::tridiagonal::cpu::vector::Vector;

/// Elimination with exchanged rows, W vectors of systems side by side; lanes do what the reference does.
#[derive(Clone, Copy)]
pub(crate) struct Pivoted<V: Vector<T>, T: Scalar, const W: usize> {
    /// The row that goes on: its entry in the column at hand and the next, its right side and its size.
    pivot: [V; W],
    next: [V; W],
    value: [V; W],
    size: [V; W],
    /// On the way back the two rows of the solution behind.
    behind: [[V; 2]; W],
    sound: V::Mask,
}

#[inline(always)]
fn largest<T: Scalar, V: Vector<T>>(x: V, y: V) -> V {
    V::select(x.abs().above(y.abs()), x.abs(), y.abs())
}

impl<T: Scalar, V: Vector<T>, const W: usize> Pivoted<V, T, W> {
    /// Keeps a row with its entry in the second upper band.
    #[inline(always)]
    unsafe fn keep(&mut self, [pivot, next, beyond, value]: [V; 4], kept: *mut T) {
        let width = W * V::LANES;
        // SAFETY: the caller promises room for three values a lane; the vectors show that there are instructions.
        unsafe {
            let (zero, one, infinity) = (V::splat(T::ZERO), V::splat(T::ONE), V::splat(T::ONE / T::ZERO));
            let inverse = one.div(pivot);
            let value = value.mul(inverse);
            let trusted = V::both(pivot.abs().above(zero), infinity.above(pivot.abs()));
            self.sound = V::both(self.sound, V::both(trusted, infinity.above(value.abs())));
            next.mul(inverse).store(kept);
            value.store(kept.add(width));
            beyond.mul(inverse).store(kept.add(2 * width));
        }
    }

    /// Keeps the row that goes on or the one below it, and eliminates the other.
    #[inline(always)]
    unsafe fn eliminate(&mut self, w: usize, [a, b, c, d]: [V; 4], kept: *mut T) {
        // SAFETY: the vectors show that the processor has the instructions.
        let zero = unsafe { V::splat(T::ZERO) };
        let (pivot, next, value, size) = (self.pivot[w], self.next[w], self.value[w], self.size[w]);
        let size_below = largest(largest(a, b), c);
        let exchange = a.abs().mul(size).above(pivot.abs().mul(size_below));
        let (kept_pivot, kept_next, kept_value) =
            (V::select(exchange, a, pivot), V::select(exchange, b, next), V::select(exchange, d, value));
        let factor = V::select(exchange, pivot, a).div(kept_pivot);
        self.pivot[w] = V::select(exchange, next, b).sub(factor.mul(kept_next));
        self.next[w] = V::select(exchange, zero.sub(factor.mul(c)), c);
        self.value[w] = V::select(exchange, value, d).sub(factor.mul(kept_value));
        self.size[w] = V::select(exchange, size, size_below);
        // SAFETY: the caller promises room for three values a lane.
        unsafe { self.keep([kept_pivot, kept_next, V::select(exchange, c, zero), kept_value], kept) };
    }
}

impl<T: Scalar, V: Vector<T>, const W: usize> Elimination<T, V, W> for Pivoted<V, T, W> {
    const SLOTS: usize = 3;
    const KEEPS_LAST_ROW: bool = false;

    #[inline(always)]
    unsafe fn begin(_last_row: *const T) -> Self {
        // SAFETY: the caller promises that the processor has the instructions.
        let (zero, one) = unsafe { (V::splat(T::ZERO), V::splat(T::ONE)) };
        let rows = [zero; W];
        let sound = one.above(zero);
        Self { pivot: rows, next: rows, value: rows, size: rows, behind: [[zero; 2]; W], sound }
    }

    #[inline(always)]
    unsafe fn forward(
        &mut self,
        rows: Range<usize>,
        n: usize,
        [lower, diagonal, upper]: [Rows<T>; 3],
        d: Rows<T>,
        scratch: *mut T,
    ) {
        let width = W * V::LANES;
        // A copy of its own stays in registers.
        let mut now = *self;
        for (k, row) in rows.enumerate() {
            for w in 0..W {
                let lane = w * V::LANES;
                // SAFETY: the caller promises rows of W vectors, and room for three values a row and lane.
                unsafe {
                    let (a, b) = (V::load(lower.at(k, lane)), V::load(diagonal.at(k, lane)));
                    let (mut c, d) = (V::load(upper.at(k, lane)), V::load(d.at(k, lane)));
                    if row + 1 == n {
                        c = V::splat(T::ZERO);
                    }
                    if row == 0 {
                        (now.pivot[w], now.next[w], now.value[w]) = (b, c, d);
                        now.size[w] = largest(b, c);
                    } else {
                        now.eliminate(w, [a, b, c, d], scratch.add(3 * (row - 1) * width + lane));
                    }
                }
            }
        }
        *self = now;
    }

    #[inline(always)]
    unsafe fn turn(&mut self, n: usize, scratch: *mut T) -> bool {
        for w in 0..W {
            // SAFETY: the caller promises the same room as in `forward`, and that there are instructions.
            unsafe {
                let zero = V::splat(T::ZERO);
                let last = [self.pivot[w], zero, zero, self.value[w]];
                self.keep(last, scratch.add((3 * (n - 1) * W + w) * V::LANES));
            }
        }
        V::is_everywhere(self.sound)
    }

    #[inline(always)]
    unsafe fn backward(&mut self, rows: Range<usize>, n: usize, scratch: *const T, u: RowsMut<T>) -> bool {
        let width = W * V::LANES;
        let mut now = *self;
        for (k, row) in rows.enumerate().rev() {
            for w in 0..W {
                let lane = w * V::LANES;
                // SAFETY: the caller promises what `forward` left, and rows that can be written.
                unsafe {
                    let kept = scratch.add(3 * row * width + lane);
                    let [one, two] = now.behind[w];
                    let mut value = V::load(kept.add(width));
                    if row + 1 < n {
                        value = value.sub(V::load(kept).mul(one));
                    }
                    if row + 2 < n {
                        value = value.sub(V::load(kept.add(2 * width)).mul(two));
                    }
                    now.behind[w] = [value, one];
                    u.put(k, lane, value);
                }
            }
        }
        *self = now;
        // SAFETY: the processor has the instructions, as the caller promises.
        let infinity = unsafe { V::splat(T::ONE / T::ZERO) };
        let mut is_finite = true;
        for [value, _] in self.behind {
            is_finite &= V::is_everywhere(infinity.above(value.abs()));
        }
        is_finite
    }
}
