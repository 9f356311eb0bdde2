use std::ops::Range;

use femtile_device::Scalar;

use crate::tridiagonal::cpu::panel::{Rows, RowsMut};
use crate::tridiagonal::cpu::sweep::Elimination;
use crate::tridiagonal::cpu::vector::Vector;

/// Elimination with W vectors of systems side by side, so that their divisions overlap.
#[derive(Clone, Copy)]
pub(crate) struct Thomas<V: Vector<T>, T: Scalar, const W: usize> {
    c_star: [V; W],
    d_star: [V; W],
    sound: V::Mask,
}

impl<T: Scalar, V: Vector<T>, const W: usize> Thomas<V, T, W> {
    /// Whether pivots are finite, and more than the rounding of the diagonal.
    #[inline(always)]
    unsafe fn look_at(&mut self, pivot: V, diagonal: V) {
        // SAFETY: the caller's vectors show that the processor has the instructions.
        let (epsilon, infinity) = unsafe { (V::splat(T::EPSILON), V::splat(T::ONE / T::ZERO)) };
        let size = pivot.abs();
        let trusted = V::both(size.above(epsilon.mul(diagonal.abs())), infinity.above(size));
        self.sound = V::both(self.sound, trusted);
    }
}

impl<T: Scalar, V: Vector<T>, const W: usize> Elimination<T, V, W> for Thomas<V, T, W> {
    const SLOTS: usize = 2;
    const KEEPS_LAST_ROW: bool = false;

    #[inline(always)]
    unsafe fn begin(_last_row: *const T) -> Self {
        // SAFETY: the caller promises that the processor has the instructions.
        let (zero, one) = unsafe { (V::splat(T::ZERO), V::splat(T::ONE)) };
        Self { c_star: [zero; W], d_star: [zero; W], sound: one.above(zero) }
    }

    #[inline(always)]
    unsafe fn forward(
        &mut self,
        rows: Range<usize>,
        _n: usize,
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
                // SAFETY: the caller promises rows of W vectors, and room for two values a row and lane.
                unsafe {
                    let (b, mut value) = (V::load(diagonal.at(k, lane)), V::load(d.at(k, lane)));
                    let mut pivot = b;
                    if row > 0 {
                        let a = V::load(lower.at(k, lane));
                        pivot = b.sub(a.mul(now.c_star[w]));
                        value = value.sub(a.mul(now.d_star[w]));
                    }
                    let inverse = V::splat(T::ONE).div(pivot);
                    now.look_at(pivot, b);
                    now.d_star[w] = value.mul(inverse);
                    now.c_star[w] = V::load(upper.at(k, lane)).mul(inverse);
                    let kept = scratch.add(2 * row * width + lane);
                    now.c_star[w].store(kept);
                    now.d_star[w].store(kept.add(width));
                }
            }
        }
        *self = now;
    }

    #[inline(always)]
    unsafe fn turn(&mut self, _n: usize, _scratch: *mut T) -> bool {
        // SAFETY: the processor has the instructions, as the caller promises.
        let infinity = unsafe { V::splat(T::ONE / T::ZERO) };
        for value in self.d_star {
            self.sound = V::both(self.sound, infinity.above(value.abs()));
        }
        V::is_everywhere(self.sound)
    }

    #[inline(always)]
    unsafe fn backward(&mut self, rows: Range<usize>, n: usize, scratch: *const T, u: RowsMut<T>) -> bool {
        let width = W * V::LANES;
        let mut now = *self;
        // From here on `d_star` holds the row of the solution behind.
        for (k, row) in rows.enumerate().rev() {
            for w in 0..W {
                let lane = w * V::LANES;
                // SAFETY: the caller promises what `forward` left, and rows that can be written.
                unsafe {
                    let kept = scratch.add(2 * row * width + lane);
                    if row + 1 < n {
                        now.d_star[w] = V::load(kept.add(width)).sub(V::load(kept).mul(now.d_star[w]));
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
