use femtile_device::Scalar;

use crate::cpu::sweep::{At, BEHIND, Elimination};
use femtile_device::cpu::vector::Vector;

/// Elimination with exchanged rows; lanes do what the reference does. Kept are the two upper bands and the value.
pub(crate) struct Pivoted;

/// The state of the sweep: entries of the row that is not stored yet.
const PIVOT: usize = BEHIND;
/// Its entry in the next column.
const NEXT: usize = 1;
/// Its right side.
const VALUE: usize = 2;
/// The size of its largest entry.
const SIZE: usize = 3;
/// On the way back the second row behind.
const SECOND: usize = 1;

impl<T: Scalar, V: Vector<T>> Elimination<T, V> for Pivoted {
    const SLOTS: usize = 3;
    const STATE: usize = 4;

    #[inline(always)]
    unsafe fn first(at: At<T>, [_, b, c, d]: [V; 4]) -> V::Mask {
        // SAFETY: the caller promises memory of these sizes.
        unsafe {
            let c = inner(at, c);
            go_on(at, [b, c, d, largest(b, c)]);
        }
        b.always()
    }

    /// Keeps the row that goes on or the one below it, and eliminates the other.
    #[inline(always)]
    unsafe fn forward(at: At<T>, [a, b, c, d]: [V; 4]) -> V::Mask {
        // SAFETY: the caller promises memory of these sizes, and that the rows before were eliminated.
        unsafe {
            let (zero, c) = (V::splat(T::ZERO), inner(at, c));
            let [pivot, next, value, size]: [V; 4] =
                [at.state(PIVOT), at.state(NEXT), at.state(VALUE), at.state(SIZE)];
            let size_below = largest(largest(a, b), c);
            let exchange = a.abs().mul(size).above(pivot.abs().mul(size_below));
            let kept_pivot = V::select(exchange, a, pivot);
            let kept_next = V::select(exchange, b, next);
            let kept_value = V::select(exchange, d, value);
            let factor = V::select(exchange, pivot, a).div(kept_pivot);
            go_on(
                at,
                [
                    V::select(exchange, next, b).sub(factor.mul(kept_next)),
                    V::select(exchange, zero.sub(factor.mul(c)), c),
                    V::select(exchange, value, d).sub(factor.mul(kept_value)),
                    V::select(exchange, size, size_below),
                ],
            );
            keep(at.previous(), [kept_pivot, kept_next, V::select(exchange, c, zero), kept_value])
        }
    }

    #[inline(always)]
    unsafe fn turn(at: At<T>) -> V::Mask {
        // SAFETY: the caller promises that the rows before were eliminated.
        unsafe {
            let zero = V::splat(T::ZERO);
            keep(at, [at.state(PIVOT), zero, zero, at.state(VALUE)])
        }
    }

    #[inline(always)]
    unsafe fn backward(at: At<T>) -> V {
        // SAFETY: the caller promises that the way forwards was ended.
        unsafe {
            let mut value: V = at.kept(1);
            if at.row + 1 < at.n {
                let one: V = at.state(BEHIND);
                value = value.sub(at.kept::<V>(0).mul(one));
                if at.row + 2 < at.n {
                    value = value.sub(at.kept::<V>(2).mul(at.state(SECOND)));
                }
                at.set_state(SECOND, one);
            }
            at.set_state(BEHIND, value);
            value
        }
    }
}

/// The upper value of a row, which the last row has not.
#[inline(always)]
unsafe fn inner<T: Scalar, V: Vector<T>>(at: At<T>, c: V) -> V {
    // SAFETY: the vector shows that there are instructions.
    if at.row + 1 == at.n { unsafe { V::splat(T::ZERO) } } else { c }
}

#[inline(always)]
unsafe fn go_on<T: Scalar, V: Vector<T>>(at: At<T>, [pivot, next, value, size]: [V; 4]) {
    // SAFETY: the caller promises memory of these sizes.
    unsafe {
        at.set_state(PIVOT, pivot);
        at.set_state(NEXT, next);
        at.set_state(VALUE, value);
        at.set_state(SIZE, size);
    }
}

/// Keeps a row with its entry in the second upper band.
#[inline(always)]
unsafe fn keep<T: Scalar, V: Vector<T>>(at: At<T>, [pivot, next, beyond, value]: [V; 4]) -> V::Mask {
    // SAFETY: the caller promises memory of these sizes; the vectors show that there are instructions.
    unsafe {
        let inverse = V::splat(T::ONE).div(pivot);
        let value = value.mul(inverse);
        at.keep(0, next.mul(inverse));
        at.keep(1, value);
        at.keep(2, beyond.mul(inverse));
        let trusted = V::both(pivot.abs().above(V::splat(T::ZERO)), pivot.finite());
        V::both(trusted, value.finite())
    }
}

#[inline(always)]
fn largest<T: Scalar, V: Vector<T>>(x: V, y: V) -> V {
    V::select(x.abs().above(y.abs()), x.abs(), y.abs())
}
