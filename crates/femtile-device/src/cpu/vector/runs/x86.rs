//! Runs of the vectors with 256 and 512 bits.

// Loops over lanes: closures of iterators would not be compiled for these vectors.
#![allow(clippy::needless_range_loop)]

use std::arch::x86_64::*;

use super::super::x86::{F32x8, F32x16, F64x4, F64x8};
use super::Runs;

/// Adds a 128-bit vector to memory.
macro_rules! add_128 {
    (f64, $to:expr, $value:expr) => {{
        let to: *mut f64 = $to;
        _mm_storeu_pd(to, _mm_add_pd(_mm_loadu_pd(to), $value));
    }};
    (f32, $to:expr, $value:expr) => {{
        let to: *mut f32 = $to;
        _mm_storeu_ps(to, _mm_add_ps(_mm_loadu_ps(to), $value));
    }};
}

/// Adds the lanes of a vector, written to an array first.
macro_rules! add_lanes {
    ($t:ty, $n:literal, $store:ident, $vector:expr, $to:ident) => {{
        let mut values = [0.0 as $t; $n];
        $store(values.as_mut_ptr(), $vector);
        for lane in 0..$n {
            *$to(lane) += values[lane];
        }
    }};
}

impl Runs<f64, 1> for F64x4 {
    #[inline(always)]
    unsafe fn read_runs(from: impl Fn(usize) -> *const f64) -> [Self; 1] {
        // SAFETY: what the caller promises.
        unsafe { [Self(_mm256_setr_pd(*from(0), *from(1), *from(2), *from(3)))] }
    }

    #[inline(always)]
    unsafe fn add_runs([value]: [Self; 1], to: impl Fn(usize) -> *mut f64) {
        // SAFETY: what the caller promises.
        unsafe { add_lanes!(f64, 4, _mm256_storeu_pd, value.0, to) }
    }
}

impl Runs<f64, 2> for F64x4 {
    #[inline(always)]
    unsafe fn read_runs(from: impl Fn(usize) -> *const f64) -> [Self; 2] {
        // SAFETY: what the caller promises.
        unsafe {
            let (even, odd) = (both(from(0), from(2)), both(from(1), from(3)));
            [Self(_mm256_unpacklo_pd(even, odd)), Self(_mm256_unpackhi_pd(even, odd))]
        }
    }

    #[inline(always)]
    unsafe fn add_runs([first, second]: [Self; 2], to: impl Fn(usize) -> *mut f64) {
        // SAFETY: what the caller promises.
        unsafe {
            let even = _mm256_unpacklo_pd(first.0, second.0);
            let odd = _mm256_unpackhi_pd(first.0, second.0);
            add_128!(f64, to(0), _mm256_castpd256_pd128(even));
            add_128!(f64, to(1), _mm256_castpd256_pd128(odd));
            add_128!(f64, to(2), _mm256_extractf128_pd::<1>(even));
            add_128!(f64, to(3), _mm256_extractf128_pd::<1>(odd));
        }
    }
}

impl Runs<f64, 4> for F64x4 {
    #[inline(always)]
    unsafe fn read_runs(from: impl Fn(usize) -> *const f64) -> [Self; 4] {
        // SAFETY: what the caller promises.
        unsafe {
            // The first and the second half of lanes two by two.
            let (a, b) = (both(from(0), from(2)), both(from(1), from(3)));
            let (c, d) = (both(from(0).add(2), from(2).add(2)), both(from(1).add(2), from(3).add(2)));
            let pairs = [_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b)];
            [Self(pairs[0]), Self(pairs[1]), Self(_mm256_unpacklo_pd(c, d)), Self(_mm256_unpackhi_pd(c, d))]
        }
    }

    #[inline(always)]
    unsafe fn add_runs([a, b, c, d]: [Self; 4], to: impl Fn(usize) -> *mut f64) {
        // SAFETY: what the caller promises.
        unsafe {
            let low = [_mm256_unpacklo_pd(a.0, b.0), _mm256_unpacklo_pd(c.0, d.0)];
            let high = [_mm256_unpackhi_pd(a.0, b.0), _mm256_unpackhi_pd(c.0, d.0)];
            let lanes = [
                _mm256_permute2f128_pd::<0x20>(low[0], low[1]),
                _mm256_permute2f128_pd::<0x20>(high[0], high[1]),
                _mm256_permute2f128_pd::<0x31>(low[0], low[1]),
                _mm256_permute2f128_pd::<0x31>(high[0], high[1]),
            ];
            for lane in 0..4 {
                let to = to(lane);
                _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), lanes[lane]));
            }
        }
    }
}

impl Runs<f64, 1> for F64x8 {
    #[inline(always)]
    unsafe fn read_runs(from: impl Fn(usize) -> *const f64) -> [Self; 1] {
        // SAFETY: what the caller promises.
        unsafe {
            let low = _mm256_setr_pd(*from(0), *from(1), *from(2), *from(3));
            let high = _mm256_setr_pd(*from(4), *from(5), *from(6), *from(7));
            [Self(_mm512_insertf64x4::<1>(_mm512_castpd256_pd512(low), high))]
        }
    }

    #[inline(always)]
    unsafe fn add_runs([value]: [Self; 1], to: impl Fn(usize) -> *mut f64) {
        // SAFETY: what the caller promises.
        unsafe { add_lanes!(f64, 8, _mm512_storeu_pd, value.0, to) }
    }
}

impl Runs<f64, 2> for F64x8 {
    #[inline(always)]
    unsafe fn read_runs(from: impl Fn(usize) -> *const f64) -> [Self; 2] {
        // SAFETY: what the caller promises.
        unsafe {
            let mut parts = [_mm512_setzero_pd(); 2];
            for k in 0..2 {
                let (low, high) = (both(from(k), from(2 + k)), both(from(4 + k), from(6 + k)));
                parts[k] = _mm512_insertf64x4::<1>(_mm512_castpd256_pd512(low), high);
            }
            let [even, odd] = parts;
            [Self(_mm512_unpacklo_pd(even, odd)), Self(_mm512_unpackhi_pd(even, odd))]
        }
    }

    #[inline(always)]
    unsafe fn add_runs([first, second]: [Self; 2], to: impl Fn(usize) -> *mut f64) {
        // SAFETY: what the caller promises.
        unsafe {
            let even = _mm512_unpacklo_pd(first.0, second.0);
            let odd = _mm512_unpackhi_pd(first.0, second.0);
            add_128!(f64, to(0), _mm512_castpd512_pd128(even));
            add_128!(f64, to(1), _mm512_castpd512_pd128(odd));
            add_128!(f64, to(2), _mm512_extractf64x2_pd::<1>(even));
            add_128!(f64, to(3), _mm512_extractf64x2_pd::<1>(odd));
            add_128!(f64, to(4), _mm512_extractf64x2_pd::<2>(even));
            add_128!(f64, to(5), _mm512_extractf64x2_pd::<2>(odd));
            add_128!(f64, to(6), _mm512_extractf64x2_pd::<3>(even));
            add_128!(f64, to(7), _mm512_extractf64x2_pd::<3>(odd));
        }
    }
}

impl Runs<f64, 4> for F64x8 {
    #[inline(always)]
    unsafe fn read_runs(from: impl Fn(usize) -> *const f64) -> [Self; 4] {
        // SAFETY: what the caller promises.
        unsafe {
            // Lanes 0 and 2, 1 and 3, 4 and 6, 5 and 7.
            let mut pairs = [_mm512_setzero_pd(); 4];
            for k in 0..4 {
                let lane = k % 2 + 4 * (k / 2);
                let low = _mm512_castpd256_pd512(_mm256_loadu_pd(from(lane)));
                pairs[k] = _mm512_insertf64x4::<1>(low, _mm256_loadu_pd(from(lane + 2)));
            }
            let low = [_mm512_unpacklo_pd(pairs[0], pairs[1]), _mm512_unpacklo_pd(pairs[2], pairs[3])];
            let high = [_mm512_unpackhi_pd(pairs[0], pairs[1]), _mm512_unpackhi_pd(pairs[2], pairs[3])];
            [
                Self(_mm512_shuffle_f64x2::<0x88>(low[0], low[1])),
                Self(_mm512_shuffle_f64x2::<0x88>(high[0], high[1])),
                Self(_mm512_shuffle_f64x2::<0xDD>(low[0], low[1])),
                Self(_mm512_shuffle_f64x2::<0xDD>(high[0], high[1])),
            ]
        }
    }

    #[inline(always)]
    unsafe fn add_runs([a, b, c, d]: [Self; 4], to: impl Fn(usize) -> *mut f64) {
        // SAFETY: what the caller promises.
        unsafe {
            let low = [_mm512_unpacklo_pd(a.0, b.0), _mm512_unpacklo_pd(c.0, d.0)];
            let high = [_mm512_unpackhi_pd(a.0, b.0), _mm512_unpackhi_pd(c.0, d.0)];
            // Both halves of two lanes, next to each other.
            let first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
            let last = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
            let lanes = [
                _mm512_permutex2var_pd(low[0], first, low[1]),
                _mm512_permutex2var_pd(high[0], first, high[1]),
                _mm512_permutex2var_pd(low[0], last, low[1]),
                _mm512_permutex2var_pd(high[0], last, high[1]),
            ];
            for lane in 0..8 {
                let (pair, to) = (lanes[lane / 4 * 2 + lane % 2], to(lane));
                let value = if lane % 4 < 2 {
                    _mm512_castpd512_pd256(pair)
                } else {
                    _mm512_extractf64x4_pd::<1>(pair)
                };
                _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), value));
            }
        }
    }
}

/// Transposes squares of four within 128 bits.
macro_rules! squares_of_four {
    ($a:expr, $b:expr, $c:expr, $d:expr; $low:ident $high:ident $shuffle:ident) => {{
        let (p, q) = ($low($a, $b), $high($a, $b));
        let (r, s) = ($low($c, $d), $high($c, $d));
        [$shuffle::<0x44>(p, r), $shuffle::<0xEE>(p, r), $shuffle::<0x44>(q, s), $shuffle::<0xEE>(q, s)]
    }};
}

/// Reads two numbers of single precision as one of double precision.
///
/// # Safety
/// Two values can be read.
#[inline(always)]
unsafe fn pair(from: *const f32) -> f64 {
    // SAFETY: by the contract; no alignment is needed.
    unsafe { from.cast::<f64>().read_unaligned() }
}

impl Runs<f32, 1> for F32x8 {
    #[inline(always)]
    unsafe fn read_runs(from: impl Fn(usize) -> *const f32) -> [Self; 1] {
        // SAFETY: what the caller promises.
        unsafe {
            let low = _mm_setr_ps(*from(0), *from(1), *from(2), *from(3));
            let high = _mm_setr_ps(*from(4), *from(5), *from(6), *from(7));
            [Self(_mm256_set_m128(high, low))]
        }
    }

    #[inline(always)]
    unsafe fn add_runs([value]: [Self; 1], to: impl Fn(usize) -> *mut f32) {
        // SAFETY: what the caller promises.
        unsafe { add_lanes!(f32, 8, _mm256_storeu_ps, value.0, to) }
    }
}

impl Runs<f32, 2> for F32x8 {
    #[inline(always)]
    unsafe fn read_runs(from: impl Fn(usize) -> *const f32) -> [Self; 2] {
        // SAFETY: what the caller promises.
        unsafe {
            let a = _mm256_setr_pd(pair(from(0)), pair(from(1)), pair(from(4)), pair(from(5)));
            let b = _mm256_setr_pd(pair(from(2)), pair(from(3)), pair(from(6)), pair(from(7)));
            let (a, b) = (_mm256_castpd_ps(a), _mm256_castpd_ps(b));
            [Self(_mm256_shuffle_ps::<0x88>(a, b)), Self(_mm256_shuffle_ps::<0xDD>(a, b))]
        }
    }

    #[inline(always)]
    unsafe fn add_runs([first, second]: [Self; 2], to: impl Fn(usize) -> *mut f32) {
        let (mut one, mut other) = ([0.0; 8], [0.0; 8]);
        // SAFETY: what the caller promises.
        unsafe {
            _mm256_storeu_ps(one.as_mut_ptr(), first.0);
            _mm256_storeu_ps(other.as_mut_ptr(), second.0);
            for lane in 0..8 {
                *to(lane) += one[lane];
                *to(lane).add(1) += other[lane];
            }
        }
    }
}

impl Runs<f32, 4> for F32x8 {
    #[inline(always)]
    unsafe fn read_runs(from: impl Fn(usize) -> *const f32) -> [Self; 4] {
        // SAFETY: what the caller promises.
        unsafe {
            let (a, b) = (fours(from(0), from(4)), fours(from(1), from(5)));
            let (c, d) = (fours(from(2), from(6)), fours(from(3), from(7)));
            let [a, b, c, d] =
                squares_of_four!(a, b, c, d; _mm256_unpacklo_ps _mm256_unpackhi_ps _mm256_shuffle_ps);
            [Self(a), Self(b), Self(c), Self(d)]
        }
    }

    #[inline(always)]
    unsafe fn add_runs([a, b, c, d]: [Self; 4], to: impl Fn(usize) -> *mut f32) {
        // SAFETY: what the caller promises.
        unsafe {
            let lanes = squares_of_four!(
                a.0, b.0, c.0, d.0; _mm256_unpacklo_ps _mm256_unpackhi_ps _mm256_shuffle_ps
            );
            for lane in 0..4 {
                add_128!(f32, to(lane), _mm256_castps256_ps128(lanes[lane]));
            }
            for lane in 0..4 {
                add_128!(f32, to(lane + 4), _mm256_extractf128_ps::<1>(lanes[lane]));
            }
        }
    }
}

impl Runs<f32, 1> for F32x16 {
    #[inline(always)]
    unsafe fn read_runs(from: impl Fn(usize) -> *const f32) -> [Self; 1] {
        // SAFETY: what the caller promises.
        unsafe {
            let mut parts = [_mm_setzero_ps(); 4];
            for k in 0..4 {
                parts[k] = _mm_setr_ps(*from(4 * k), *from(4 * k + 1), *from(4 * k + 2), *from(4 * k + 3));
            }
            [Self(joined(parts))]
        }
    }

    #[inline(always)]
    unsafe fn add_runs([value]: [Self; 1], to: impl Fn(usize) -> *mut f32) {
        // SAFETY: what the caller promises.
        unsafe { add_lanes!(f32, 16, _mm512_storeu_ps, value.0, to) }
    }
}

impl Runs<f32, 2> for F32x16 {
    #[inline(always)]
    unsafe fn read_runs(from: impl Fn(usize) -> *const f32) -> [Self; 2] {
        // SAFETY: what the caller promises.
        unsafe {
            let mut parts = [[_mm_setzero_ps(); 4]; 2];
            for k in 0..4 {
                for half in 0..2 {
                    let lane = 4 * k + 2 * half;
                    let values = _mm_setr_pd(pair(from(lane)), pair(from(lane + 1)));
                    parts[half][k] = _mm_castpd_ps(values);
                }
            }
            let (a, b) = (joined(parts[0]), joined(parts[1]));
            [Self(_mm512_shuffle_ps::<0x88>(a, b)), Self(_mm512_shuffle_ps::<0xDD>(a, b))]
        }
    }

    #[inline(always)]
    unsafe fn add_runs([first, second]: [Self; 2], to: impl Fn(usize) -> *mut f32) {
        let (mut one, mut other) = ([0.0; 16], [0.0; 16]);
        // SAFETY: what the caller promises.
        unsafe {
            _mm512_storeu_ps(one.as_mut_ptr(), first.0);
            _mm512_storeu_ps(other.as_mut_ptr(), second.0);
            for lane in 0..16 {
                *to(lane) += one[lane];
                *to(lane).add(1) += other[lane];
            }
        }
    }
}

impl Runs<f32, 4> for F32x16 {
    #[inline(always)]
    unsafe fn read_runs(from: impl Fn(usize) -> *const f32) -> [Self; 4] {
        // SAFETY: what the caller promises.
        unsafe {
            let mut parts = [_mm512_setzero_ps(); 4];
            for k in 0..4 {
                let (low, high) = (fours(from(k), from(k + 4)), fours(from(k + 8), from(k + 12)));
                parts[k] = halves(low, high);
            }
            let [a, b, c, d] = parts;
            let [a, b, c, d] =
                squares_of_four!(a, b, c, d; _mm512_unpacklo_ps _mm512_unpackhi_ps _mm512_shuffle_ps);
            [Self(a), Self(b), Self(c), Self(d)]
        }
    }

    #[inline(always)]
    unsafe fn add_runs([a, b, c, d]: [Self; 4], to: impl Fn(usize) -> *mut f32) {
        // SAFETY: what the caller promises.
        unsafe {
            let lanes = squares_of_four!(
                a.0, b.0, c.0, d.0; _mm512_unpacklo_ps _mm512_unpackhi_ps _mm512_shuffle_ps
            );
            for lane in 0..4 {
                add_128!(f32, to(lane), _mm512_castps512_ps128(lanes[lane]));
            }
            for lane in 0..4 {
                add_128!(f32, to(lane + 4), _mm512_extractf32x4_ps::<1>(lanes[lane]));
            }
            for lane in 0..4 {
                add_128!(f32, to(lane + 8), _mm512_extractf32x4_ps::<2>(lanes[lane]));
            }
            for lane in 0..4 {
                add_128!(f32, to(lane + 12), _mm512_extractf32x4_ps::<3>(lanes[lane]));
            }
        }
    }
}

/// Returns two values at each of two places.
///
/// # Safety
/// The processor has AVX2, and two values can be read at each place.
#[inline(always)]
unsafe fn both(low: *const f64, high: *const f64) -> __m256d {
    // SAFETY: by the contract.
    unsafe { _mm256_set_m128d(_mm_loadu_pd(high), _mm_loadu_pd(low)) }
}

/// Returns four values at each of two places.
///
/// # Safety
/// The processor has AVX2, and four values can be read at each place.
#[inline(always)]
unsafe fn fours(low: *const f32, high: *const f32) -> __m256 {
    // SAFETY: by the contract.
    unsafe { _mm256_set_m128(_mm_loadu_ps(high), _mm_loadu_ps(low)) }
}

/// Joins two vectors of 256 bits.
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
unsafe fn halves(low: __m256, high: __m256) -> __m512 {
    // SAFETY: by the contract.
    unsafe {
        let (low, high) = (_mm256_castps_pd(low), _mm256_castps_pd(high));
        _mm512_castpd_ps(_mm512_insertf64x4::<1>(_mm512_castpd256_pd512(low), high))
    }
}

/// Joins four vectors of 128 bits.
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
unsafe fn joined([a, b, c, d]: [__m128; 4]) -> __m512 {
    // SAFETY: by the contract.
    unsafe { halves(_mm256_set_m128(b, a), _mm256_set_m128(d, c)) }
}
