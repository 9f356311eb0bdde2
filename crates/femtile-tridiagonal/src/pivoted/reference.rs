use femtile_device::Scalar;

use crate::thomas::reference::finite;

/// A row as far as it is eliminated: its entry in the column at hand and the next, its right side, and the size
/// of the largest entry that it had.
#[derive(Clone, Copy)]
struct Row<T> {
    pivot: T,
    next: T,
    value: T,
    size: T,
}

/// Solves one system; `Err` is the row whose pivot is zero or not finite, or whose value is not finite.
pub(crate) fn pivoted<T: Scalar>(a: &[T], b: &[T], c: &[T], d: &[T]) -> Result<Vec<T>, usize> {
    let n = b.len();
    let upper = |i: usize| if i + 1 < n { c[i] } else { T::ZERO };
    let (mut first, mut second, mut u) = (vec![T::ZERO; n], vec![T::ZERO; n], vec![T::ZERO; n]);
    let mut now = Row { pivot: b[0], next: upper(0), value: d[0], size: largest(b[0], upper(0)) };
    for i in 0..n {
        let (mut chosen, mut beyond) = (now, T::ZERO);
        if i + 1 < n {
            let size = largest(largest(a[i + 1], b[i + 1]), upper(i + 1));
            let below = [a[i + 1], b[i + 1], upper(i + 1), d[i + 1]];
            (chosen, beyond, now) = eliminate(now, below, size);
        }
        let inverse = T::ONE / chosen.pivot;
        (first[i], second[i], u[i]) = (chosen.next * inverse, beyond * inverse, chosen.value * inverse);
        if chosen.pivot == T::ZERO || !chosen.pivot.is_finite() || !u[i].is_finite() {
            return Err(i);
        }
    }
    for i in (0..n).rev() {
        if i + 1 < n {
            u[i] = u[i] - first[i] * u[i + 1];
        }
        if i + 2 < n {
            u[i] = u[i] - second[i] * u[i + 2];
        }
    }
    finite(u)
}

/// The row that is kept, its entry in the second upper band, and the row that goes on.
fn eliminate<T: Scalar>(now: Row<T>, [a, b, c, d]: [T; 4], size: T) -> (Row<T>, T, Row<T>) {
    let below = Row { pivot: a, next: b, value: d, size };
    if a.abs() * now.size > now.pivot.abs() * size {
        let factor = now.pivot / a;
        let rest = Row {
            pivot: now.next - factor * b,
            next: T::ZERO - factor * c,
            value: now.value - factor * d,
            size: now.size,
        };
        (below, c, rest)
    } else {
        let factor = a / now.pivot;
        let rest = Row { pivot: b - factor * now.next, next: c, value: d - factor * now.value, size };
        (now, T::ZERO, rest)
    }
}

/// The larger of two sizes.
fn largest<T: Scalar>(x: T, y: T) -> T {
    if x.abs() > y.abs() { x.abs() } else { y.abs() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_pivot_is_exchanged() {
        let u = pivoted(&[f64::NAN, 2.0, 1.0], &[0.0, 1.0, 1.0], &[1.0, 1.0, f64::NAN], &[2.0, 7.0, 5.0]);
        assert_eq!(u, Ok(vec![1.0, 2.0, 3.0]));
        assert_eq!(pivoted(&[0.0, 1.0], &[1.0, 1.0], &[1.0, 0.0], &[1.0; 2]), Err(1));
    }
}
