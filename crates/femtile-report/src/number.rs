//! Numbers as text.

/// Returns a number without the digits of its rounding: four decimals, or two of a power of ten.
pub fn short(x: f64) -> String {
    let size = x.abs();
    if size == 0.0 || (1e-3..1e5).contains(&size) {
        let text = format!("{x:.4}");
        return text.trim_end_matches('0').trim_end_matches('.').into();
    }
    if size < 1e-300 { "0".into() } else { format!("{x:.2e}") }
}

/// Returns a number rounded to `n` significant digits, at least one and without zeros at the end; a power of ten where the
/// number is below 10⁻⁴ or would have zeros before the point that are no digits.
pub fn significant(x: f64, n: usize) -> String {
    let text = format!("{x:.*e}", n.saturating_sub(1));
    let Some((mantissa, exponent)) = text.split_once('e') else { return text };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..n as i32).contains(&exponent) {
        without_zeros(&format!("{x:.*}", (n as i32 - 1 - exponent) as usize))
    } else {
        format!("{}e{exponent}", without_zeros(mantissa))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_rounding_are_left_out() {
        for (x, text) in
            [(0.0, "0"), (0.1 + 0.2, "0.3"), (-12.5, "-12.5"), (123456.0, "1.23e5"), (1e-310, "0")]
        {
            assert_eq!(short(x), text);
        }
    }

    #[test]
    fn numbers_of_any_size_keep_their_significant_digits() {
        for (x, text) in [
            (8.854e-12, "8.854e-12"),
            (10337.213902539812, "10337.2139"),
            (-0.25, "-0.25"),
            (0.0, "0"),
            (1.0 / 3.0, "0.3333333333"),
            (9_999_999_999.7, "1e10"),
            (100.0, "100"),
            (2e200, "2e200"),
            (5e-324, "4.940656458e-324"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(significant(x, 10), text);
        }
        assert_eq!(significant(0.6, 6), "0.6");
    }
}
