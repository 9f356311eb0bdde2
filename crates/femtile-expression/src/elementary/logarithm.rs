//! Logarithms.
//!
//! x = 2ᵏ (1 + f) with √½ ≤ 1 + f < √2; with s = f/(2 + f), log(1 + f) = 2 artanh s = f − f²/2 + s (f²/2 + s² R(s²))
//! with a minimax polynomial R.

use super::{LN2_HIGH, LN2_LOW};
use crate::node::choose;

/// (2 artanh s − 2 s)/s³ as polynomial in s² on s ≤ 0.1717; the relative error of the logarithm is below 2⁻⁵⁹.
const R: [f64; 7] = [
    0.666_666_666_666_673_5,
    0.399_999_999_994_110_9,
    0.285_714_287_432_633_46,
    0.222_221_984_759_365_97,
    0.181_835_697_416_709_3,
    0.153_139_032_131_566_2,
    0.147_975_079_313_819_7,
];

/// The bits of a number just below √½.
const ROOT_HALF: u64 = 0x3fe6_a09e_0000_0000;
const ONE: u64 = 0x3ff0_0000_0000_0000;
const MANTISSA: u64 = 0x000f_ffff_ffff_ffff;

/// k as a number and 1 + f of a normal positive number.
#[inline(always)]
fn split(x: f64) -> (f64, f64) {
    let bits = x.to_bits().wrapping_add(ONE - ROOT_HALF);
    let mantissa = f64::from_bits((bits & MANTISSA).wrapping_add(ROOT_HALF));
    // An integer below 2⁵² is the mantissa of 2⁵² + k + 1023.
    const SHIFT: f64 = 4_503_599_627_370_496.0;
    let k = f64::from_bits((bits >> 52) | SHIFT.to_bits()) - (SHIFT + 1023.0);
    (k, mantissa)
}

/// k log 2 + log(1 + f) + `correction`.
#[inline(always)]
fn sum(k: f64, f: f64, correction: f64) -> f64 {
    let s = f / (2.0 + f);
    let z = s * s;
    let half_square = 0.5 * f * f;
    let (r01, r23, r45) = (z.mul_add(R[1], R[0]), z.mul_add(R[3], R[2]), z.mul_add(R[5], R[4]));
    let z2 = z * z;
    let rest = z * R[6].mul_add(z2, r45).mul_add(z2 * z2, r23.mul_add(z2, r01));
    let small = s.mul_add(half_square + rest, k.mul_add(LN2_LOW, correction));
    k.mul_add(LN2_HIGH, -((half_square - small) - f))
}

/// A number with the highest bit 0 for positive, normal and finite x.
#[inline(always)]
pub(crate) fn unusual_number(x: f64) -> u64 {
    const SMALLEST: u64 = f64::MIN_POSITIVE.to_bits();
    const LARGEST: u64 = f64::MAX.to_bits();
    let bits = x.to_bits();
    bits | bits.wrapping_sub(SMALLEST) | LARGEST.wrapping_sub(bits)
}

/// [`log`] of ordinary numbers.
#[inline(always)]
pub(crate) fn ordinary_log(x: f64) -> f64 {
    let (k, mantissa) = split(x);
    sum(k, mantissa - 1.0, 0.0)
}

/// log x, within 1 unit in the last place.
#[inline(always)]
pub(crate) fn log(x: f64) -> f64 {
    const SCALE: f64 = 18_014_398_509_481_984.0;
    let subnormal = x < f64::MIN_POSITIVE;
    let (k, mantissa) = split(choose(subnormal, x * SCALE, x));
    let value = sum(k - choose(subnormal, 54.0, 0.0), mantissa - 1.0, 0.0);
    let value = choose(x < f64::INFINITY, value, x);
    choose(x > 0.0, value, choose(x == 0.0, f64::NEG_INFINITY, f64::NAN))
}

/// log(1 + x), within 1 unit in the last place.
#[inline(always)]
pub(crate) fn log1p(x: f64) -> f64 {
    let u = 1.0 + x;
    let (k, mantissa) = split(u);
    // What the sum 1 + x has lost, relative to it.
    let lost = choose(x < 1.0, x - (u - 1.0), 1.0 - (u - x)) / u;
    let exact = k == 0.0;
    let value = sum(k, choose(exact, x, mantissa - 1.0), choose(exact, 0.0, lost));
    let value = choose(x < f64::INFINITY, value, x);
    let value = choose(x > -1.0, value, choose(x == -1.0, f64::NEG_INFINITY, f64::NAN));
    choose(x == 0.0, x, value)
}
