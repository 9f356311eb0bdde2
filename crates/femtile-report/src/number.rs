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
}
