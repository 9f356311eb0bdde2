use femtile_device::Scalar;

use crate::cpu::sweep::{At, BEHIND, Elimination};
use femtile_device::cpu::vector::Vector;

/// Elimination row by row; each lane does as the reference. $c^*$ and $d^*$ are stored; the row behind is the state of the sweep.
pub(crate) struct Thomas;

impl<T: Scalar, V: Vector<T>> Elimination<T, V> for Thomas {
    const SLOTS: usize = 2;
    const STATE: usize = 1;

    #[inline(always)]
    unsafe fn first(at: At<T>, [_, b, c, d]: [V; 4]) -> V::Mask {
        // SAFETY: the caller promises memory of these sizes.
        unsafe { scale(at, b, [b, c, d]) }
    }

    #[inline(always)]
    unsafe fn forward(at: At<T>, [a, b, c, d]: [V; 4]) -> V::Mask {
        let before = at.previous();
        // SAFETY: the caller promises memory of these sizes, and that the row before was eliminated.
        unsafe {
            let pivot = b.sub(a.mul(before.kept(0)));
            scale(at, b, [pivot, c, d.sub(a.mul(before.kept(1)))])
        }
    }

    #[inline(always)]
    unsafe fn turn(at: At<T>) -> V::Mask {
        // SAFETY: the caller promises that all rows were eliminated.
        unsafe { at.kept::<V>(1).finite() }
    }

    #[inline(always)]
    unsafe fn backward(at: At<T>) -> V {
        // SAFETY: the caller promises that all rows were eliminated.
        unsafe { substitute(at) }
    }
}

/// Divides a row by its pivot, and keeps it.
#[inline(always)]
unsafe fn scale<T: Scalar, V: Vector<T>>(at: At<T>, diagonal: V, [pivot, c, d]: [V; 3]) -> V::Mask {
    // SAFETY: the caller promises memory of these sizes; the vectors show that there are instructions.
    unsafe {
        let inverse = V::splat(T::ONE).div(pivot);
        at.keep(0, c.mul(inverse));
        at.keep(1, d.mul(inverse));
    }
    pivot.is_pivot_of(diagonal)
}

/// $u_i = d^*_i - c^*_i u_{i+1}$ from the two that were kept, the row behind being the state.
///
/// # Safety
/// Both were kept, and the rows behind were solved.
#[inline(always)]
pub(crate) unsafe fn substitute<T: Scalar, V: Vector<T>>(at: At<T>) -> V {
    // SAFETY: what the caller promises.
    unsafe {
        let mut value: V = at.kept(1);
        if at.row + 1 < at.n {
            value = value.sub(at.kept::<V>(0).mul(at.state(BEHIND)));
        }
        at.set_state(BEHIND, value);
        value
    }
}
