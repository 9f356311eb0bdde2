use femtile_device::Scalar;

use crate::cpu::sweep::{At, BEHIND, Elimination};
use femtile_device::cpu::vector::Vector;

/// Elimination of rings; lanes do what the reference does. Kept are $c^*$, $d^*$ and $q^*$ of all rows but the last.
pub(crate) struct Periodic;

/// The state of the sweep, of the partly eliminated last row: its right side, and in back substitution its unknown,
const RIGHT: usize = 1;
/// its entry in the column at hand,
const ENTRY: usize = 2;
/// and its diagonal.
const DIAGONAL: usize = 3;
/// The last row as it was.
const LAST_LOWER: usize = 4;
/// See [`LAST_LOWER`].
const LAST_DIAGONAL: usize = 5;

impl<T: Scalar, V: Vector<T>> Elimination<T, V> for Periodic {
    const SLOTS: usize = 3;
    const STATE: usize = 6;
    const KEEPS_LAST_ROW: bool = true;

    #[inline(always)]
    unsafe fn begin(at: At<T>, [lower, diagonal, upper, right]: [V; 4]) {
        let state = [right, right, upper, diagonal, lower, diagonal];
        for (k, value) in state.into_iter().enumerate() {
            // SAFETY: the caller promises memory of these sizes.
            unsafe { at.set_state(k, value) };
        }
    }

    #[inline(always)]
    unsafe fn first(at: At<T>, [a, b, c, d]: [V; 4]) -> V::Mask {
        if at.n == 1 {
            return b.always();
        }
        // SAFETY: the caller promises memory of these sizes.
        unsafe { eliminate(at, b, [b, c, d, a]) }
    }

    #[inline(always)]
    unsafe fn forward(at: At<T>, [a, b, c, d]: [V; 4]) -> V::Mask {
        if at.row + 1 == at.n {
            return b.always();
        }
        let before = at.previous();
        // SAFETY: the caller promises memory of these sizes, and that the row before was eliminated.
        unsafe {
            let pivot = b.sub(a.mul(before.kept(0)));
            let value = d.sub(a.mul(before.kept(1)));
            eliminate(at, b, [pivot, c, value, V::splat(T::ZERO).sub(a.mul(before.kept(2)))])
        }
    }

    #[inline(always)]
    unsafe fn turn(at: At<T>) -> V::Mask {
        // SAFETY: the caller promises that all rows were eliminated.
        unsafe {
            let mut diagonal: V = at.state(DIAGONAL);
            if at.n == 1 {
                diagonal = diagonal.add(at.state::<V>(LAST_LOWER).add(at.state(ENTRY)));
            }
            let last = at.state::<V>(RIGHT).mul(V::splat(T::ONE).div(diagonal));
            at.set_state(RIGHT, last);
            at.set_state(BEHIND, last);
            let mut sound = V::both(diagonal.is_pivot_of(at.state(LAST_DIAGONAL)), last.finite());
            if at.n > 1 {
                sound = V::both(sound, at.previous().kept::<V>(1).finite());
            }
            sound
        }
    }

    #[inline(always)]
    unsafe fn backward(at: At<T>) -> V {
        // SAFETY: the caller promises that the way forwards was ended.
        unsafe {
            let mut value: V = at.state(BEHIND);
            if at.row + 1 < at.n {
                let [c, d, q]: [V; 3] = [at.kept(0), at.kept(1), at.kept(2)];
                value = d.sub(c.mul(value)).sub(q.mul(at.state(RIGHT)));
                at.set_state(BEHIND, value);
            }
            value
        }
    }
}

/// Divides a row before the last one by its pivot, and takes it from the last; `column` is its entry there.
#[inline(always)]
unsafe fn eliminate<T: Scalar, V: Vector<T>>(
    at: At<T>,
    diagonal: V,
    [pivot, c, value, mut column]: [V; 4],
) -> V::Mask {
    // SAFETY: the caller promises memory of these sizes; the vectors show that there are instructions.
    unsafe {
        let zero = V::splat(T::ZERO);
        let mut entry: V = at.state(ENTRY);
        let meets_last = at.row + 2 == at.n;
        if meets_last {
            column = column.add(c);
            entry = entry.add(at.state(LAST_LOWER));
        }
        let inverse = V::splat(T::ONE).div(pivot);
        let (value, column) = (value.mul(inverse), column.mul(inverse));
        at.set_state(DIAGONAL, at.state::<V>(DIAGONAL).sub(entry.mul(column)));
        at.set_state(RIGHT, at.state::<V>(RIGHT).sub(entry.mul(value)));
        let c = if meets_last { zero } else { c.mul(inverse) };
        at.set_state(ENTRY, zero.sub(entry.mul(c)));
        at.keep(0, c);
        at.keep(1, value);
        at.keep(2, column);
    }
    pivot.is_pivot_of(diagonal)
}
