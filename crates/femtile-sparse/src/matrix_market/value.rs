//! Numbers out of words.

use femtile_device::Scalar;

use super::Field;
use super::MatrixMarketError;
use super::lines::{Lines, quoted};

/// A whole number without a sign.
#[inline]
pub(super) fn whole(word: &[u8]) -> Option<usize> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0_usize, |value, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value.checked_mul(10)?.checked_add(digit.into())
    })
}

/// The number of type `T` nearest to the word.
///
/// f32 is read from the word itself: by way of f64 it would be rounded twice. Fortran's exponents, as in `1.5D+00`,
/// are read too.
fn nearest<T: Scalar>(word: &[u8]) -> Option<T> {
    let word = std::str::from_utf8(word).ok()?;
    let parse = |word: &str| match T::NAME == f32::NAME {
        true => word.parse::<f32>().ok().map(f64::from),
        false => word.parse().ok(),
    };
    let value = parse(word).or_else(|| parse(&word.replace(['d', 'D'], "e")))?;
    Some(T::from_f64(value))
}

/// The value that `word`, on the current line, spells.
///
/// # Errors
/// When it is no number, no whole one where the field is `integer`, or not finite.
#[inline]
pub(super) fn value<T: Scalar>(lines: &Lines<'_>, field: Field, word: &[u8]) -> Result<T, MatrixMarketError> {
    if field == Field::Integer && !is_whole(word) {
        return Err(lines.error(format!(
            "{} is no whole number; if the values are not whole, write `real` in the banner",
            quoted(word)
        )));
    }
    match nearest::<T>(word) {
        Some(value) if value.is_finite() => Ok(value),
        found => Err(refused(lines, word, found)),
    }
}

fn is_whole(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(word);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

#[cold]
fn refused<T: Scalar>(lines: &Lines<'_>, word: &[u8], found: Option<T>) -> MatrixMarketError {
    let quoted = quoted(word);
    let has_digits = word.iter().any(u8::is_ascii_digit);
    lines.error(match found {
        None => format!("{quoted} is no number; values are written as `-1.5e-3`"),
        Some(_) if has_digits => format!("{quoted} is beyond the range of {}", T::NAME),
        Some(_) => {
            format!("the value is {quoted}; find out which program wrote it, for no solver can use it")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_digits_that_fit() {
        assert_eq!(whole(b"0"), Some(0));
        assert_eq!(whole(b"18446744073709551615"), Some(usize::MAX));
        for word in ["", "-1", "+1", "1.0", "18446744073709551616", "99999999999999999999999"] {
            assert_eq!(whole(word.as_bytes()), None, "{word}");
        }
    }

    #[test]
    fn exponents_of_fortran_are_read() {
        assert_eq!(nearest::<f64>(b"1.5D+00"), Some(1.5));
        assert_eq!(nearest::<f32>(b"-2d-3"), Some(-2e-3));
        for word in ["D", "1D", "D5", "1D2E3"] {
            assert_eq!(nearest::<f64>(word.as_bytes()), None, "{word}");
        }
    }

    #[test]
    fn single_precision_is_rounded_once() {
        // Above the midpoint between 1 and the next f32 by less than the precision of f64.
        let word = b"1.00000005960464477540";
        assert_eq!(nearest::<f32>(word), Some(1.0 + f32::EPSILON));
        assert_eq!(nearest::<f64>(word).map(|value| value as f32), Some(1.0));
    }
}
