use femtile_device::Scalar;

/// Solves one system; `Err` is the row whose pivot fails or whose value is not finite.
pub(crate) fn thomas<T: Scalar>(a: &[T], b: &[T], c: &[T], d: &[T]) -> Result<Vec<T>, usize> {
    let n = b.len();
    let (mut c_star, mut u) = (vec![T::ZERO; n], vec![T::ZERO; n]);
    for i in 0..n {
        let (pivot, value) =
            if i == 0 { (b[0], d[0]) } else { (b[i] - a[i] * c_star[i - 1], d[i] - a[i] * u[i - 1]) };
        let inverse = T::ONE / pivot;
        u[i] = value * inverse;
        if !is_sound(pivot, b[i]) || !u[i].is_finite() {
            return Err(i);
        }
        c_star[i] = if i + 1 < n { c[i] * inverse } else { T::ZERO };
    }
    for i in (0..n.saturating_sub(1)).rev() {
        u[i] = u[i] - c_star[i] * u[i + 1];
    }
    finite(u)
}

/// Returns whether a pivot can be trusted: finite, and more than the rounding of the entry it came from.
pub(crate) fn is_sound<T: Scalar>(pivot: T, diagonal: T) -> bool {
    pivot.abs() > T::EPSILON * diagonal.abs() && pivot.is_finite()
}

/// A solution, or the row where going back left the range of numbers.
pub(crate) fn finite<T: Scalar>(u: Vec<T>) -> Result<Vec<T>, usize> {
    match u.iter().rposition(|value| !value.is_finite()) {
        None => Ok(u),
        Some(row) => Err(row),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_unknowns_are_those_computed_by_hand() {
        // 2u − v = 0, −u + 2v − w = 0, −v + 2w = 4.
        let u = thomas(&[f64::NAN, -1.0, -1.0], &[2.0; 3], &[-1.0, -1.0, f64::NAN], &[0.0, 0.0, 4.0]);
        let error = |u: f64, expected: f64| (u - expected).abs() < 1e-15;
        assert!(u.unwrap().into_iter().zip([1.0, 2.0, 3.0]).all(|(u, expected)| error(u, expected)));
    }

    #[test]
    fn the_row_is_named_where_going_back_overflows() {
        let u = thomas(&[0.0; 3], &[1.0, 1.0, 1.0], &[1e200, 1e200, 0.0], &[0.0, 0.0, 1e200]);
        assert_eq!(u, Err(1));
        assert_eq!(thomas(&[0.0, 1.0], &[1.0, 1.0], &[1.0, 0.0], &[1.0; 2]), Err(1));
    }
}
