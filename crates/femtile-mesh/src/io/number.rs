//! Numbers out of ASCII words, exact to the last bit.

/// A whole number with an optional sign.
pub(super) fn integer(word: &[u8]) -> Option<i64> {
    let (negative, digits) = match word {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, word),
    };
    if digits.is_empty() {
        return None;
    }
    // Eighteen digits cannot overflow; longer words take the checked way.
    if digits.len() > 18 {
        return std::str::from_utf8(word).ok()?.parse().ok();
    }
    let mut value = 0i64;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = 10 * value + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

/// A whole number, also if written as a floating-point number, such as `11.0`.
pub(super) fn whole(word: &[u8]) -> Option<i64> {
    // Beyond this bound neighbouring whole numbers are the same double.
    const LARGEST: f64 = (1u64 << 53) as f64;
    integer(word).or_else(|| real(word).and_then(whole_value).filter(|value| (*value as f64).abs() < LARGEST))
}

/// Returns a floating-point number as a whole number, if it is one.
pub(super) fn whole_value(value: f64) -> Option<i64> {
    (value.fract() == 0.0 && value.abs() < i64::MAX as f64).then_some(value as i64)
}

/// Powers of ten that a double holds exactly.
const POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// The double nearest to a decimal number.
///
/// A significand up to $2^{53}$ and a power of ten up to $10^{22}$ are both exact, so that one product
/// or quotient rounds correctly; every other word goes to the standard library. Fortran's exponents,
/// as in `1.5D+00`, are read too.
///
/// # Source
/// `[clinger1990]`, the fast path of section 4.
pub(super) fn real(word: &[u8]) -> Option<f64> {
    short(word).or_else(|| {
        let text = std::str::from_utf8(word).ok()?;
        text.parse().ok().or_else(|| text.replace(['d', 'D'], "e").parse().ok())
    })
}

fn short(word: &[u8]) -> Option<f64> {
    let (negative, mut rest) = match word {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, word),
    };
    let (mut significand, mut n_digits) = (0u64, 0usize);
    let mut digits = |rest: &mut &[u8]| {
        let before = n_digits;
        while let [byte @ b'0'..=b'9', tail @ ..] = *rest {
            significand = significand.wrapping_mul(10).wrapping_add(u64::from(byte - b'0'));
            n_digits += 1;
            *rest = tail;
        }
        n_digits - before
    };
    digits(&mut rest);
    let mut exponent = 0i64;
    if let [b'.', tail @ ..] = rest {
        rest = tail;
        exponent = -(digits(&mut rest) as i64);
    }
    if n_digits == 0 || n_digits > 19 || significand > 1 << 53 {
        return None;
    }
    if let [b'e' | b'E' | b'd' | b'D', tail @ ..] = rest {
        if tail.len() > 5 {
            return None;
        }
        exponent += integer(tail)?;
    } else if !rest.is_empty() {
        return None;
    }
    let power = *POWERS.get(exponent.unsigned_abs() as usize)?;
    let value = if exponent < 0 { significand as f64 / power } else { significand as f64 * power };
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_spelling_of_a_double_reads_as_the_standard_library_reads_it(
            text in "[+-]?[0-9]{0,21}(\\.[0-9]{0,20})?([eE][+-]?[0-9]{0,4})?",
        ) {
            let expected: Option<f64> = text.parse().ok();
            prop_assert_eq!(real(text.as_bytes()).map(f64::to_bits), expected.map(f64::to_bits));
        }

        #[test]
        fn printed_doubles_return(bits in any::<u64>()) {
            let value = f64::from_bits(bits);
            prop_assume!(!value.is_nan());
            for text in [format!("{value}"), format!("{value:e}"), format!("{value:?}")] {
                prop_assert_eq!(real(text.as_bytes()).map(f64::to_bits), Some(bits));
            }
        }

        #[test]
        fn every_spelling_of_an_integer_reads_as_the_standard_library_reads_it(text in "[+-]?[0-9a]{0,22}") {
            prop_assert_eq!(integer(text.as_bytes()), text.parse().ok());
        }
    }

    #[test]
    fn floating_point_numbers_without_a_fraction_are_whole() {
        for (word, value) in
            [("11.0", 11), ("-3.", -3), ("1e3", 1000), ("7", 7), ("9223372036854775807", i64::MAX)]
        {
            assert_eq!(whole(word.as_bytes()), Some(value), "{word}");
        }
        for word in ["1.5", "nan", "inf", "9007199254740993.0", "1e300", "x", ""] {
            assert_eq!(whole(word.as_bytes()), None, "{word}");
        }
    }

    #[test]
    fn exponents_of_fortran_are_read() {
        for (word, value) in [
            ("1.5D+00", 1.5),
            ("-2d3", -2e3),
            ("1D-310", 1e-310),
            ("0.12345678901234567890D+02", 12.345678901234567),
        ] {
            assert_eq!(real(word.as_bytes()), Some(value), "{word}");
        }
    }

    #[test]
    fn whole_numbers_may_be_written_as_real_ones() {
        for (word, value) in [("11.0", Some(11)), ("-3.", Some(-3)), ("2e3", Some(2000)), ("0.5", None)] {
            assert_eq!(whole(word.as_bytes()), value, "{word}");
        }
        for word in ["nan", "inf", "1e16", "a", ""] {
            assert_eq!(whole(word.as_bytes()), None, "{word}");
        }
    }

    #[test]
    fn words_that_are_no_numbers_are_none() {
        for word in ["", "-", ".", "e5", "1e", "1x", "--1", "0x1p3", "1e+", "1d", "D5", "1d2e3", "d"] {
            assert_eq!(real(word.as_bytes()), None, "{word}");
        }
        assert!(real(b"nan").is_some_and(f64::is_nan));
        assert_eq!(real(b"-inf"), Some(f64::NEG_INFINITY));
    }
}
