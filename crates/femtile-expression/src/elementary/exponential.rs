//! The exponential and what is made of it.
//!
//! x = k log 2 + r with |r| ≤ ½ log 2; eʳ − 1 = r + r² q(r) with a minimax polynomial q; eˣ = 2ᵏ eʳ.

use std::f64::consts::LOG2_E;

use super::{LN2_HIGH, LN2_LOW};
use crate::node::choose;

/// (eʳ − 1 − r)/r² on |r| ≤ 0.3467; the relative error of eʳ − 1 is below 2⁻⁵⁵.
const Q: [f64; 10] = [
    0.500_000_000_000_000_5,
    0.166_666_666_666_665_9,
    0.041_666_666_666_576_68,
    0.008_333_333_333_389_59,
    0.001_388_888_893_159_019_2,
    1.984_126_971_894_985_6e-4,
    2.480_150_524_129_464_6e-5,
    2.755_740_756_180_425e-6,
    2.762_605_152_492_373e-7,
    2.505_378_087_471_563_6e-8,
];

/// Added to a number below 2⁵¹, it rounds that to an integer and leaves it in the lowest bits.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// The integer k in the lowest bits, in two's complement, and eʳ − 1.
#[inline(always)]
fn reduce(x: f64) -> (u64, f64) {
    let rounded = x.mul_add(LOG2_E, ROUND);
    let k = rounded - ROUND;
    let r = k.mul_add(-LN2_LOW, k.mul_add(-LN2_HIGH, x));
    // Estrin's scheme: its chain of dependent operations is short.
    let r2 = r * r;
    let (q01, q23, q45) = (r.mul_add(Q[1], Q[0]), r.mul_add(Q[3], Q[2]), r.mul_add(Q[5], Q[4]));
    let (q67, q89, r4) = (r.mul_add(Q[7], Q[6]), r.mul_add(Q[9], Q[8]), r2 * r2);
    let upper = q89.mul_add(r4, q67.mul_add(r2, q45));
    let q = upper.mul_add(r4, q23.mul_add(r2, q01));
    (rounded.to_bits(), q.mul_add(r2, r))
}

/// 2ᵏ for the integer k + 1023 > 0 in the lowest 11 bits.
#[inline(always)]
fn power_of_two(biased: u64) -> f64 {
    f64::from_bits(biased << 52)
}

/// A number with the highest bit 0 for ordinary exponents: |x| ≤ 708, so that neither eˣ nor 2ᵏ⁻¹ leaves the normal
/// numbers.
#[inline(always)]
pub(crate) fn unusual_exponent(x: f64) -> u64 {
    const LARGEST: u64 = 708.0_f64.to_bits();
    LARGEST.wrapping_sub(x.abs().to_bits())
}

/// [`exp`] of ordinary exponents.
#[inline(always)]
pub(crate) fn ordinary_exp(x: f64) -> f64 {
    let (bits, rest) = reduce(x);
    f64::from_bits((1.0 + rest).to_bits().wrapping_add(bits << 52))
}

/// eˣ, within 1 unit in the last place.
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    // Beyond these the result is infinite or 0.
    let x = choose(x > 710.0, 710.0, x);
    let x = choose(x < -746.0, -746.0, x);
    let (bits, rest) = reduce(x);
    // Two factors: 2ᵏ alone may be too large or too small.
    const BIAS: u64 = 2048;
    let k = bits.wrapping_add(BIAS) & 0xfff;
    let half = k >> 1;
    (1.0 + rest) * power_of_two(half.wrapping_sub(1)) * power_of_two((k - half).wrapping_sub(1))
}

/// [`expm1`] of ordinary exponents.
#[inline(always)]
pub(crate) fn ordinary_expm1(x: f64) -> f64 {
    let (bits, rest) = reduce(x);
    // 2ᵏ⁻¹, since 2ᵏ may be too large.
    let half = power_of_two(bits.wrapping_add(1022));
    // The sign of 0 would be lost.
    (2.0 * half.mul_add(rest, half - 0.5)).copysign(x)
}

/// eˣ − 1, within 2.2 units in the last place.
#[inline(always)]
pub(crate) fn expm1(x: f64) -> f64 {
    let bounded = choose(x > 710.0, 710.0, x);
    let bounded = choose(bounded < -50.0, -50.0, bounded);
    let value = ordinary_expm1(bounded);
    choose(x == 0.0, x, value)
}

/// (eˣ − 1)/x, within 3 units in the last place.
#[inline(always)]
pub(crate) fn exprel(x: f64) -> f64 {
    let numerator = expm1(x);
    // The quotient of two subnormal numbers is not accurate.
    choose(x.abs() < 1e-17, 1.0, choose(numerator == f64::INFINITY, numerator, numerator / x))
}

/// tanh x = −d/(2 + d) with d = e⁻²ˣ − 1 for x ≥ 0, within 3 units in the last place.
#[inline(always)]
pub(crate) fn tanh(x: f64) -> f64 {
    let d = expm1(-2.0 * x.abs());
    (-d / (2.0 + d)).copysign(x)
}
