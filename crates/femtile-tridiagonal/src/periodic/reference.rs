use femtile_device::Scalar;

use crate::thomas::reference::{finite, is_sound};

/// Solves one ring; `Err` is the row whose pivot fails or whose value is not finite.
pub(crate) fn periodic<T: Scalar>(a: &[T], b: &[T], c: &[T], d: &[T]) -> Result<Vec<T>, usize> {
    let last = b.len() - 1;
    let (mut c_star, mut q_star, mut u) = (vec![T::ZERO; last], vec![T::ZERO; last], vec![T::ZERO; last + 1]);
    // The last row as far as it is eliminated: its entry in the column at hand, its diagonal and its right side.
    let (mut entry, mut diagonal, mut right) = (c[last], b[last], d[last]);
    for i in 0..last {
        let (mut pivot, mut value, mut column) = (b[i], d[i], T::ZERO);
        if i == 0 {
            column = a[0];
        } else {
            pivot -= a[i] * c_star[i - 1];
            value -= a[i] * u[i - 1];
            column -= a[i] * q_star[i - 1];
        }
        if i + 1 == last {
            column += c[i];
            entry += a[last];
        }
        let inverse = T::ONE / pivot;
        (u[i], q_star[i]) = (value * inverse, column * inverse);
        if !is_sound(pivot, b[i]) || !u[i].is_finite() {
            return Err(i);
        }
        diagonal -= entry * q_star[i];
        right -= entry * u[i];
        if i + 1 < last {
            c_star[i] = c[i] * inverse;
            entry = -(entry * c_star[i]);
        }
    }
    if last == 0 {
        diagonal += a[0] + c[0];
    }
    let w = right * (T::ONE / diagonal);
    if !is_sound(diagonal, b[last]) || !w.is_finite() {
        return Err(last);
    }
    u[last] = w;
    for i in (0..last).rev() {
        u[i] = u[i] - c_star[i] * u[i + 1] - q_star[i] * w;
    }
    finite(u)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_one_is_coupled_to_itself() {
        assert_eq!(periodic(&[1.0], &[3.0], &[-2.0], &[4.0]), Ok(vec![2.0]));
        assert_eq!(periodic(&[1.0], &[1.0], &[-2.0], &[4.0]), Err(0));
    }

    #[test]
    fn a_ring_of_three_is_as_computed_by_hand() {
        // 4u − v − w = 4 − 5 = −1, −u + 4v − w = 4, −u − v + 4w = 9 for (1, 2, 3).
        let u = periodic(&[-1.0; 3], &[4.0; 3], &[-1.0; 3], &[-1.0, 4.0, 9.0]).unwrap();
        assert!(
            u.into_iter().zip([1.0, 2.0, 3.0]).all(|(u, expected): (f64, f64)| (u - expected).abs() < 1e-15)
        );
    }
}
