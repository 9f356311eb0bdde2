//! Vectors of the instructions with 256 and 512 bits.

use std::arch::x86_64::*;

use super::Vector;
use crate::cpu::vectorize::{avx2, avx512};

macro_rules! vector {
    (
        $(#[$doc:meta])* $name:ident($raw:ty) of $t:ident x $n:literal, mask $mask:ty, run by $run:ident;
        $load:ident $splat:ident $store:ident $stream:ident $add:ident $sub:ident $mul:ident $div:ident $fma:ident;
        abs |$x:ident| $abs:expr;
        above |$ax:ident, $ay:ident| $above:expr;
        both |$one:ident, $other:ident| $both:expr;
        everywhere |$all:ident| $everywhere:expr;
        select |$m:ident, $yes:ident, $no:ident| $select:expr;
        transpose |$rows:ident| $transpose:expr;
        first |$count:ident| $prefix:expr;
        load |$these:ident, $from:ident| $load_these:expr;
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name(pub(super) $raw);

        // In what follows a value of the type shows that the processor has the instructions.
        impl Vector<$t> for $name {
            const LANES: usize = $n;
            type Mask = $mask;

            #[inline(always)]
            unsafe fn vectorize<R>(work: impl FnOnce() -> R) -> R {
                // SAFETY: the caller promises the instructions.
                unsafe { $run(work) }
            }

            #[inline(always)]
            unsafe fn load(from: *const $t) -> Self {
                // SAFETY: what the caller promises.
                Self(unsafe { $load(from) })
            }

            #[inline(always)]
            unsafe fn splat(value: $t) -> Self {
                // SAFETY: what the caller promises.
                Self(unsafe { $splat(value) })
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut $t) {
                // SAFETY: what the caller promises.
                unsafe { $store(to, self.0) }
            }

            #[inline(always)]
            unsafe fn stream(self, to: *mut $t) {
                // SAFETY: what the caller promises.
                unsafe { $stream(to, self.0) }
            }

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: the processor has the instruction, as a value exists.
                Self(unsafe { $add(self.0, other.0) })
            }

            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                // SAFETY: the processor has the instruction, as a value exists.
                Self(unsafe { $sub(self.0, other.0) })
            }

            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                // SAFETY: the processor has the instruction, as a value exists.
                Self(unsafe { $mul(self.0, other.0) })
            }

            #[inline(always)]
            fn plus_product(self, one: Self, other: Self) -> Self {
                // SAFETY: the processor has the instruction, as a value exists.
                Self(unsafe { $fma(one.0, other.0, self.0) })
            }

            #[inline(always)]
            fn div(self, other: Self) -> Self {
                // SAFETY: the processor has the instruction, as a value exists.
                Self(unsafe { $div(self.0, other.0) })
            }

            #[inline(always)]
            fn abs(self) -> Self {
                let $x = self.0;
                // SAFETY: the processor has the instruction, as a value exists.
                Self(unsafe { $abs })
            }

            #[inline(always)]
            fn above(self, other: Self) -> $mask {
                let ($ax, $ay) = (self.0, other.0);
                // SAFETY: the processor has the instruction, as a value exists.
                unsafe { $above }
            }

            #[inline(always)]
            fn both($one: $mask, $other: $mask) -> $mask {
                // SAFETY: the processor has the instruction, as masks come from values.
                #[allow(unused_unsafe)]
                unsafe { $both }
            }

            #[inline(always)]
            fn is_everywhere($all: $mask) -> bool {
                // SAFETY: the processor has the instruction, as masks come from values.
                #[allow(unused_unsafe)]
                unsafe { $everywhere }
            }

            #[inline(always)]
            fn select($m: $mask, yes: Self, no: Self) -> Self {
                let ($yes, $no) = (yes.0, no.0);
                // SAFETY: the processor has the instruction, as a value exists.
                Self(unsafe { $select })
            }

            #[inline(always)]
            unsafe fn transpose(from: impl Fn(usize) -> *const $t, to: impl Fn(usize) -> *mut $t) {
                // Plain loops: what closures of the library's call would not be compiled for these vectors.
                // SAFETY: the caller lets these places be read, and the processor has the instructions.
                let mut $rows: [$raw; $n] = [unsafe { $load(from(0)) }; $n];
                for i in 1..$n {
                    // SAFETY: as above.
                    $rows[i] = unsafe { $load(from(i)) };
                }
                // SAFETY: the processor has the instructions, as the caller promises.
                unsafe { $transpose };
                for j in 0..$n {
                    // SAFETY: the caller lets these places be written.
                    unsafe { $store(to(j), $rows[j]) };
                }
            }

            #[inline(always)]
            unsafe fn transpose_first(
                $count: usize,
                from: impl Fn(usize) -> *const $t,
                to: impl Fn(usize) -> *mut $t,
            ) {
                // SAFETY: the processor has the instructions, as the caller promises.
                #[allow(unused_unsafe)]
                let $these = unsafe { $prefix };
                let $from = from(0);
                // SAFETY: the caller lets the first numbers of these places be read; what is masked is not.
                let mut $rows: [$raw; $n] = [unsafe { $load_these }; $n];
                for i in 1..$n {
                    let $from = from(i);
                    // SAFETY: as above.
                    $rows[i] = unsafe { $load_these };
                }
                // SAFETY: the processor has the instructions, as the caller promises.
                unsafe { $transpose };
                for j in 0..$count.min($n) {
                    // SAFETY: the caller lets these places be written.
                    unsafe { $store(to(j), $rows[j]) };
                }
            }
        }
    };
}

vector! {
    /// Four numbers of double precision.
    F64x4(__m256d) of f64 x 4, mask __m256d, run by avx2;
    _mm256_loadu_pd _mm256_set1_pd _mm256_storeu_pd _mm256_stream_pd
    _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_div_pd _mm256_fmadd_pd;
    abs |x| _mm256_andnot_pd(_mm256_set1_pd(-0.0), x);
    above |x, y| _mm256_cmp_pd::<_CMP_GT_OQ>(x, y);
    both |one, other| _mm256_and_pd(one, other);
    everywhere |all| _mm256_movemask_pd(all) == 0xF;
    select |mask, yes, no| _mm256_blendv_pd(no, yes, mask);
    transpose |rows| {
        let low = [_mm256_unpacklo_pd(rows[0], rows[1]), _mm256_unpacklo_pd(rows[2], rows[3])];
        let high = [_mm256_unpackhi_pd(rows[0], rows[1]), _mm256_unpackhi_pd(rows[2], rows[3])];
        rows = [
            _mm256_permute2f128_pd::<0x20>(low[0], low[1]),
            _mm256_permute2f128_pd::<0x20>(high[0], high[1]),
            _mm256_permute2f128_pd::<0x31>(low[0], low[1]),
            _mm256_permute2f128_pd::<0x31>(high[0], high[1]),
        ];
    };
    first |count| _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3));
    load |these, from| _mm256_maskload_pd(from, these);
}

vector! {
    /// Eight numbers of single precision.
    F32x8(__m256) of f32 x 8, mask __m256, run by avx2;
    _mm256_loadu_ps _mm256_set1_ps _mm256_storeu_ps _mm256_stream_ps
    _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_div_ps _mm256_fmadd_ps;
    abs |x| _mm256_andnot_ps(_mm256_set1_ps(-0.0), x);
    above |x, y| _mm256_cmp_ps::<_CMP_GT_OQ>(x, y);
    both |one, other| _mm256_and_ps(one, other);
    everywhere |all| _mm256_movemask_ps(all) == 0xFF;
    select |mask, yes, no| _mm256_blendv_ps(no, yes, mask);
    transpose |rows| {
        // Pairs of rows, then fours, each within 128 bits; then the halves.
        for i in [0, 2, 4, 6] {
            let [x, y] = [rows[i], rows[i + 1]];
            [rows[i], rows[i + 1]] = [_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y)];
        }
        for i in [0, 4] {
            let [p, q, r, s] = [rows[i], rows[i + 1], rows[i + 2], rows[i + 3]];
            rows[i] = _mm256_shuffle_ps::<0x44>(p, r);
            rows[i + 1] = _mm256_shuffle_ps::<0xEE>(p, r);
            rows[i + 2] = _mm256_shuffle_ps::<0x44>(q, s);
            rows[i + 3] = _mm256_shuffle_ps::<0xEE>(q, s);
        }
        for i in 0..4 {
            let [x, y] = [rows[i], rows[i + 4]];
            rows[i] = _mm256_permute2f128_ps::<0x20>(x, y);
            rows[i + 4] = _mm256_permute2f128_ps::<0x31>(x, y);
        }
    };
    first |count| _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    load |these, from| _mm256_maskload_ps(from, these);
}

vector! {
    /// Eight numbers of double precision.
    F64x8(__m512d) of f64 x 8, mask __mmask8, run by avx512;
    _mm512_loadu_pd _mm512_set1_pd _mm512_storeu_pd _mm512_stream_pd
    _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_div_pd _mm512_fmadd_pd;
    abs |x| _mm512_abs_pd(x);
    above |x, y| _mm512_cmp_pd_mask::<_CMP_GT_OQ>(x, y);
    both |one, other| one & other;
    everywhere |all| all == __mmask8::MAX;
    select |mask, yes, no| _mm512_mask_blend_pd(mask, no, yes);
    transpose |rows| {
        // Pairs of rows within 128 bits; then the 128 bits of four pairs.
        for i in [0, 2, 4, 6] {
            let [x, y] = [rows[i], rows[i + 1]];
            [rows[i], rows[i + 1]] = [_mm512_unpacklo_pd(x, y), _mm512_unpackhi_pd(x, y)];
        }
        let pairs = rows;
        for k in [0, 1] {
            let [p, q, r, s] = [pairs[k], pairs[k + 2], pairs[k + 4], pairs[k + 6]];
            let low = [_mm512_shuffle_f64x2::<0x44>(p, q), _mm512_shuffle_f64x2::<0x44>(r, s)];
            let high = [_mm512_shuffle_f64x2::<0xEE>(p, q), _mm512_shuffle_f64x2::<0xEE>(r, s)];
            rows[k] = _mm512_shuffle_f64x2::<0x88>(low[0], low[1]);
            rows[k + 2] = _mm512_shuffle_f64x2::<0xDD>(low[0], low[1]);
            rows[k + 4] = _mm512_shuffle_f64x2::<0x88>(high[0], high[1]);
            rows[k + 6] = _mm512_shuffle_f64x2::<0xDD>(high[0], high[1]);
        }
    };
    first |count| ((1_u32 << count.min(8)) - 1) as __mmask8;
    load |these, from| _mm512_maskz_loadu_pd(these, from);
}

vector! {
    /// Sixteen numbers of single precision.
    F32x16(__m512) of f32 x 16, mask __mmask16, run by avx512;
    _mm512_loadu_ps _mm512_set1_ps _mm512_storeu_ps _mm512_stream_ps
    _mm512_add_ps _mm512_sub_ps _mm512_mul_ps _mm512_div_ps _mm512_fmadd_ps;
    abs |x| _mm512_abs_ps(x);
    above |x, y| _mm512_cmp_ps_mask::<_CMP_GT_OQ>(x, y);
    both |one, other| one & other;
    everywhere |all| all == __mmask16::MAX;
    select |mask, yes, no| _mm512_mask_blend_ps(mask, no, yes);
    transpose |rows| {
        // Pairs of rows, then fours, each within 128 bits; then the 128 bits of four fours.
        for i in [0, 2, 4, 6, 8, 10, 12, 14] {
            let [x, y] = [rows[i], rows[i + 1]];
            [rows[i], rows[i + 1]] = [_mm512_unpacklo_ps(x, y), _mm512_unpackhi_ps(x, y)];
        }
        for i in [0, 4, 8, 12] {
            let [p, q, r, s] = [rows[i], rows[i + 1], rows[i + 2], rows[i + 3]];
            rows[i] = _mm512_shuffle_ps::<0x44>(p, r);
            rows[i + 1] = _mm512_shuffle_ps::<0xEE>(p, r);
            rows[i + 2] = _mm512_shuffle_ps::<0x44>(q, s);
            rows[i + 3] = _mm512_shuffle_ps::<0xEE>(q, s);
        }
        let fours = rows;
        for k in [0, 1, 2, 3] {
            let [p, q, r, s] = [fours[k], fours[k + 4], fours[k + 8], fours[k + 12]];
            let low = [_mm512_shuffle_f32x4::<0x44>(p, q), _mm512_shuffle_f32x4::<0x44>(r, s)];
            let high = [_mm512_shuffle_f32x4::<0xEE>(p, q), _mm512_shuffle_f32x4::<0xEE>(r, s)];
            rows[k] = _mm512_shuffle_f32x4::<0x88>(low[0], low[1]);
            rows[k + 4] = _mm512_shuffle_f32x4::<0xDD>(low[0], low[1]);
            rows[k + 8] = _mm512_shuffle_f32x4::<0x88>(high[0], high[1]);
            rows[k + 12] = _mm512_shuffle_f32x4::<0xDD>(high[0], high[1]);
        }
    };
    first |count| ((1_u32 << count.min(16)) - 1) as __mmask16;
    load |these, from| _mm512_maskz_loadu_ps(these, from);
}
