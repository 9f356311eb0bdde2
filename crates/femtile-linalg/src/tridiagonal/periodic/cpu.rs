use std::ops::Range;

use femtile_device::Scalar;

use crate::tridiagonal::cpu::panel::{Rows, RowsMut};
use crate::tridiagonal::cpu::sweep::Elimination;
use crate::tridiagonal::cpu::vector::Vector;

/// Elimination of rings, W vectors of them side by side; lanes do what the reference does.
#[derive(Clone, Copy)]
pub(crate) struct Periodic<V: Vector<T>, T: Scalar, const W: usize> {
    c_star: [V; W],
    q_star: [V; W],
    d_star: [V; W],
    /// The last row as far as it is eliminated: its entry in the column at hand, its diagonal and right side.
    entry: [V; W],
    diagonal: [V; W],
    right: [V; W],
    /// The last row as it was.
    last_lower: [V; W],
    last_diagonal: [V; W],
    sound: V::Mask,
}

impl<T: Scalar, V: Vector<T>, const W: usize> Periodic<V, T, W> {
    #[inline(always)]
    unsafe fn look_at(&mut self, pivot: V, diagonal: V) {
        // SAFETY: the vectors show that the processor has the instructions.
        let (epsilon, infinity) = unsafe { (V::splat(T::EPSILON), V::splat(T::ONE / T::ZERO)) };
        let size = pivot.abs();
        let trusted = V::both(size.above(epsilon.mul(diagonal.abs())), infinity.above(size));
        self.sound = V::both(self.sound, trusted);
    }

    /// Eliminates a row before the last one in one vector, and takes it from the last.
    #[inline(always)]
    unsafe fn eliminate(&mut self, w: usize, [row, last]: [usize; 2], [a, b, c, d]: [V; 4]) {
        // SAFETY: the vectors show that the processor has the instructions.
        let (zero, one) = unsafe { (V::splat(T::ZERO), V::splat(T::ONE)) };
        let (mut pivot, mut value, mut column) = (b, d, a);
        if row > 0 {
            pivot = b.sub(a.mul(self.c_star[w]));
            value = d.sub(a.mul(self.d_star[w]));
            column = zero.sub(a.mul(self.q_star[w]));
        }
        if row + 1 == last {
            column = column.add(c);
            self.entry[w] = self.entry[w].add(self.last_lower[w]);
        }
        let inverse = one.div(pivot);
        // SAFETY: as above.
        unsafe { self.look_at(pivot, b) };
        self.d_star[w] = value.mul(inverse);
        self.q_star[w] = column.mul(inverse);
        self.diagonal[w] = self.diagonal[w].sub(self.entry[w].mul(self.q_star[w]));
        self.right[w] = self.right[w].sub(self.entry[w].mul(self.d_star[w]));
        self.c_star[w] = if row + 1 == last { zero } else { c.mul(inverse) };
        self.entry[w] = zero.sub(self.entry[w].mul(self.c_star[w]));
    }
}

impl<T: Scalar, V: Vector<T>, const W: usize> Elimination<T, V, W> for Periodic<V, T, W> {
    const SLOTS: usize = 3;
    const KEEPS_LAST_ROW: bool = true;

    #[inline(always)]
    unsafe fn begin(last_row: *const T) -> Self {
        // SAFETY: the caller promises four times W vectors, and that the processor has the instructions.
        unsafe {
            let (zero, one) = (V::splat(T::ZERO), V::splat(T::ONE));
            let of = |k: usize| std::array::from_fn(|w| V::load(last_row.add((k * W + w) * V::LANES)));
            let (last_lower, last_diagonal) = (of(0), of(1));
            Self {
                c_star: [zero; W],
                q_star: [zero; W],
                d_star: [zero; W],
                entry: of(2),
                diagonal: last_diagonal,
                right: of(3),
                last_lower,
                last_diagonal,
                sound: one.above(zero),
            }
        }
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
        for (k, row) in rows.enumerate().filter(|&(_, row)| row + 1 < n) {
            for w in 0..W {
                let lane = w * V::LANES;
                // SAFETY: the caller promises rows of W vectors, and room for three values a row and lane.
                unsafe {
                    let (a, b) = (V::load(lower.at(k, lane)), V::load(diagonal.at(k, lane)));
                    let (c, d) = (V::load(upper.at(k, lane)), V::load(d.at(k, lane)));
                    now.eliminate(w, [row, n - 1], [a, b, c, d]);
                    let kept = scratch.add(3 * row * width + lane);
                    now.c_star[w].store(kept);
                    now.d_star[w].store(kept.add(width));
                    now.q_star[w].store(kept.add(2 * width));
                }
            }
        }
        *self = now;
    }

    #[inline(always)]
    unsafe fn turn(&mut self, n: usize, _scratch: *mut T) -> bool {
        // SAFETY: the processor has the instructions, as the caller promises.
        let (one, infinity) = unsafe { (V::splat(T::ONE), V::splat(T::ONE / T::ZERO)) };
        for w in 0..W {
            if n == 1 {
                self.diagonal[w] = self.diagonal[w].add(self.last_lower[w].add(self.entry[w]));
            }
            // SAFETY: as above.
            unsafe { self.look_at(self.diagonal[w], self.last_diagonal[w]) };
            // From here on `right` holds the last unknown, and `d_star` the one behind.
            self.right[w] = self.right[w].mul(one.div(self.diagonal[w]));
            self.sound = V::both(self.sound, infinity.above(self.d_star[w].abs()));
            self.sound = V::both(self.sound, infinity.above(self.right[w].abs()));
            self.d_star[w] = self.right[w];
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
                    if row + 1 < n {
                        let kept = scratch.add(3 * row * width + lane);
                        let of = |slot: usize| V::load(kept.add(slot * width));
                        now.d_star[w] = of(1).sub(of(0).mul(now.d_star[w])).sub(of(2).mul(now.right[w]));
                    }
                    u.put(k, lane, now.d_star[w]);
                }
            }
        }
        *self = now;
        // SAFETY: the processor has the instructions, as the caller promises.
        let infinity = unsafe { V::splat(T::ONE / T::ZERO) };
        let mut is_finite = true;
        for value in self.d_star {
            is_finite &= V::is_everywhere(infinity.above(value.abs()));
        }
        is_finite
    }
}
