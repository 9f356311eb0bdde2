//! Vectors of lanes, a system in each: the few acts of elimination, and transposes.

use femtile_device::Scalar;

/// Numbers side by side in one register.
///
/// A value exists only where the processor has the instructions: the ways to make one are unsafe.
pub(crate) trait Vector<T: Scalar>: Copy {
    /// How many numbers.
    const LANES: usize;
    /// A yes or no for each lane.
    type Mask: Copy;

    /// The numbers at `from`.
    ///
    /// # Safety
    /// The processor has the instructions, and [`Vector::LANES`] values can be read.
    unsafe fn load(from: *const T) -> Self;
    /// The same number in all lanes.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn splat(value: T) -> Self;
    /// Writes the numbers.
    ///
    /// # Safety
    /// [`Vector::LANES`] values can be written, and no other thread reads or writes them.
    unsafe fn store(self, to: *mut T);
    /// Writes the numbers past the cache.
    ///
    /// # Safety
    /// As [`Vector::store`]; `to` is aligned to the size of the vector, and [`fence`] comes before others read.
    unsafe fn stream(self, to: *mut T);
    /// Sum.
    fn add(self, other: Self) -> Self;
    /// Difference.
    fn sub(self, other: Self) -> Self;
    /// Product.
    fn mul(self, other: Self) -> Self;
    /// Quotient.
    fn div(self, other: Self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// Where this one is larger; never where either is not a number.
    fn above(self, other: Self) -> Self::Mask;
    /// Where both masks say yes.
    fn both(one: Self::Mask, other: Self::Mask) -> Self::Mask;
    /// Whether all lanes say yes.
    fn is_everywhere(mask: Self::Mask) -> bool;
    /// From `yes` where the mask says so, from `no` elsewhere.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
    /// Copies a square: value `j` of `from(i)` to value `i` of `to(j)`, for `i, j` below [`Vector::LANES`].
    ///
    /// # Safety
    /// As [`Vector::load`] and [`Vector::store`] for all of these pointers.
    unsafe fn transpose(from: impl Fn(usize) -> *const T, to: impl Fn(usize) -> *mut T);
}

/// Makes what was written past the cache visible to others.
#[inline(always)]
pub(crate) fn fence() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has this instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Asks for a line of memory that is needed soon; any address will do.
#[inline(always)]
pub(crate) fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has this instruction, and it never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The vectors of a precision, by SIMD level.
pub(crate) trait Lanes: Scalar {
    /// Without explicit vectors.
    type Plain: Vector<Self>;
    /// 256 bits.
    #[cfg(target_arch = "x86_64")]
    type Avx2: Vector<Self>;
    /// 512 bits.
    #[cfg(target_arch = "x86_64")]
    type Avx512: Vector<Self>;
}

impl Lanes for f64 {
    type Plain = Plain<f64, 4>;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = x86::F64x4;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = x86::F64x8;
}

impl Lanes for f32 {
    type Plain = Plain<f32, 8>;
    #[cfg(target_arch = "x86_64")]
    type Avx2 = x86::F32x8;
    #[cfg(target_arch = "x86_64")]
    type Avx512 = x86::F32x16;
}

/// An array that the compiler may put into whatever registers there are.
#[derive(Clone, Copy)]
pub(crate) struct Plain<T, const N: usize>([T; N]);

impl<T: Scalar, const N: usize> Plain<T, N> {
    #[inline(always)]
    fn zip(self, other: Self, act: impl Fn(T, T) -> T) -> Self {
        Self(std::array::from_fn(|k| act(self.0[k], other.0[k])))
    }
}

impl<T: Scalar, const N: usize> Vector<T> for Plain<T, N> {
    const LANES: usize = N;
    type Mask = [bool; N];

    #[inline(always)]
    unsafe fn load(from: *const T) -> Self {
        // SAFETY: the caller lets N values be read; arrays have the alignment of their elements.
        Self(unsafe { from.cast::<[T; N]>().read() })
    }

    #[inline(always)]
    unsafe fn splat(value: T) -> Self {
        Self([value; N])
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut T) {
        // SAFETY: the caller lets N values be written; arrays have the alignment of their elements.
        unsafe { to.cast::<[T; N]>().write(self.0) }
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut T) {
        // SAFETY: the caller promises more than a plain store needs.
        unsafe { self.store(to) }
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |x, y| x + y)
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |x, y| x - y)
    }

    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |x, y| x * y)
    }

    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |x, y| x / y)
    }

    #[inline(always)]
    fn abs(self) -> Self {
        Self(self.0.map(T::abs))
    }

    #[inline(always)]
    fn above(self, other: Self) -> [bool; N] {
        std::array::from_fn(|k| self.0[k] > other.0[k])
    }

    #[inline(always)]
    fn both(one: [bool; N], other: [bool; N]) -> [bool; N] {
        std::array::from_fn(|k| one[k] & other[k])
    }

    #[inline(always)]
    fn is_everywhere(mask: [bool; N]) -> bool {
        mask.iter().all(|&yes| yes)
    }

    #[inline(always)]
    fn select(mask: [bool; N], yes: Self, no: Self) -> Self {
        Self(std::array::from_fn(|k| if mask[k] { yes.0[k] } else { no.0[k] }))
    }

    #[inline(always)]
    unsafe fn transpose(from: impl Fn(usize) -> *const T, to: impl Fn(usize) -> *mut T) {
        // SAFETY: the caller lets N values be read from N places.
        let square: [[T; N]; N] = std::array::from_fn(|i| unsafe { from(i).cast::<[T; N]>().read() });
        for (j, to) in (0..N).map(to).enumerate() {
            // SAFETY: the caller lets N values be written to N places.
            unsafe { to.cast::<[T; N]>().write(square.map(|row| row[j])) }
        }
    }
}

/// Transposes a square of rows by exchanging its blocks off the diagonal, at every size from 1 to N / 2.
#[inline(always)]
fn exchange_blocks<V: Copy, const N: usize>(rows: &mut [V; N], exchange: impl Fn(V, V, usize) -> [V; 2]) {
    let mut size = 1;
    while size < N {
        for i in 0..N {
            if i & size == 0 {
                [rows[i], rows[i + size]] = exchange(rows[i], rows[i + size], size);
            }
        }
        size *= 2;
    }
}

/// For each lane of two rows with their blocks exchanged: which of the 2 N values of both rows it takes.
const fn exchanged<const N: usize>(size: usize) -> [[u32; N]; 2] {
    let mut lanes = [[0; N]; 2];
    let mut j = 0;
    while j < N {
        let is_upper = j & size != 0;
        lanes[0][j] = if is_upper { N + j - size } else { j } as u32;
        lanes[1][j] = if is_upper { N + j } else { j + size } as u32;
        j += 1;
    }
    lanes
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Vector, exchange_blocks, exchanged};

    macro_rules! vector {
        (
            $(#[$doc:meta])* $name:ident($raw:ty) of $t:ident x $n:literal, mask $mask:ty;
            $load:ident $splat:ident $store:ident $stream:ident $add:ident $sub:ident $mul:ident $div:ident;
            abs |$x:ident| $abs:expr;
            above |$ax:ident, $ay:ident| $above:expr;
            both |$one:ident, $other:ident| $both:expr;
            everywhere |$all:ident| $everywhere:expr;
            select |$m:ident, $yes:ident, $no:ident| $select:expr;
            transpose |$rows:ident| $transpose:expr;
        ) => {
            $(#[$doc])*
            #[derive(Clone, Copy)]
            pub(crate) struct $name($raw);

            // In what follows a value of the type shows that the processor has the instructions.
            impl Vector<$t> for $name {
                const LANES: usize = $n;
                type Mask = $mask;

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
            }
        };
    }

    vector! {
        /// Four numbers of double precision.
        F64x4(__m256d) of f64 x 4, mask __m256d;
        _mm256_loadu_pd _mm256_set1_pd _mm256_storeu_pd _mm256_stream_pd
        _mm256_add_pd _mm256_sub_pd _mm256_mul_pd _mm256_div_pd;
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
    }

    vector! {
        /// Eight numbers of single precision.
        F32x8(__m256) of f32 x 8, mask __m256;
        _mm256_loadu_ps _mm256_set1_ps _mm256_storeu_ps _mm256_stream_ps
        _mm256_add_ps _mm256_sub_ps _mm256_mul_ps _mm256_div_ps;
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
    }

    vector! {
        /// Eight numbers of double precision.
        F64x8(__m512d) of f64 x 8, mask __mmask8;
        _mm512_loadu_pd _mm512_set1_pd _mm512_storeu_pd _mm512_stream_pd
        _mm512_add_pd _mm512_sub_pd _mm512_mul_pd _mm512_div_pd;
        abs |x| _mm512_abs_pd(x);
        above |x, y| _mm512_cmp_pd_mask::<_CMP_GT_OQ>(x, y);
        both |one, other| one & other;
        everywhere |all| all == __mmask8::MAX;
        select |mask, yes, no| _mm512_mask_blend_pd(mask, no, yes);
        transpose |rows| exchange_blocks(&mut rows, #[inline(always)] |x, y, size| {
            let [low, high] = exchanged::<8>(size);
            let (low, high) = (low.as_ptr().cast(), high.as_ptr().cast());
            [
                _mm512_permutex2var_pd(x, _mm512_cvtepu32_epi64(_mm256_loadu_si256(low)), y),
                _mm512_permutex2var_pd(x, _mm512_cvtepu32_epi64(_mm256_loadu_si256(high)), y),
            ]
        });
    }

    vector! {
        /// Sixteen numbers of single precision.
        F32x16(__m512) of f32 x 16, mask __mmask16;
        _mm512_loadu_ps _mm512_set1_ps _mm512_storeu_ps _mm512_stream_ps
        _mm512_add_ps _mm512_sub_ps _mm512_mul_ps _mm512_div_ps;
        abs |x| _mm512_abs_ps(x);
        above |x, y| _mm512_cmp_ps_mask::<_CMP_GT_OQ>(x, y);
        both |one, other| one & other;
        everywhere |all| all == __mmask16::MAX;
        select |mask, yes, no| _mm512_mask_blend_ps(mask, no, yes);
        transpose |rows| exchange_blocks(&mut rows, #[inline(always)] |x, y, size| {
            let [low, high] = exchanged::<16>(size);
            let (low, high) = (low.as_ptr().cast(), high.as_ptr().cast());
            [
                _mm512_permutex2var_ps(x, _mm512_loadu_epi32(low), y),
                _mm512_permutex2var_ps(x, _mm512_loadu_epi32(high), y),
            ]
        });
    }
}

#[cfg(test)]
mod tests {
    use femtile_device::Cpu;
    use femtile_device::cpu::SimdLevel;

    use super::*;

    fn transposes<T: Lanes, V: Vector<T>>(cpu: &Cpu) {
        let n = V::LANES;
        let from: Vec<T> = (0..n * n).map(|k| T::from_f64(k as f64)).collect();
        let mut to = vec![T::ZERO; n * n];
        let target = to.as_mut_ptr();
        // SAFETY: both arrays hold n × n values, and the device has the level of the vectors.
        cpu.vectorize(
            #[inline(always)]
            || unsafe { V::transpose(|i| from.as_ptr().add(i * n), |j| target.add(j * n)) },
        );
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            assert_eq!(to[j * n + i], from[i * n + j], "{i}, {j} of {n}");
        }
    }

    #[test]
    fn every_vector_transposes_a_square_of_its_size() {
        for level in SimdLevel::available() {
            let cpu = Cpu::with_simd(1, level).expect("a level that is available");
            match level {
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx2 => {
                    transposes::<f64, x86::F64x4>(&cpu);
                    transposes::<f32, x86::F32x8>(&cpu);
                }
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx512 => {
                    transposes::<f64, x86::F64x8>(&cpu);
                    transposes::<f32, x86::F32x16>(&cpu);
                }
                _ => {
                    transposes::<f64, Plain<f64, 4>>(&cpu);
                    transposes::<f32, Plain<f32, 8>>(&cpu);
                }
            }
        }
    }

    /// What the instructions with 512 bits are told to do, where there are none.
    #[test]
    fn exchanged_blocks_of_all_sizes_transpose() {
        fn check<const N: usize>() {
            let mut rows: [[usize; N]; N] = std::array::from_fn(|i| std::array::from_fn(|j| N * i + j));
            exchange_blocks(&mut rows, |x, y, size| {
                let both = [x, y].concat();
                exchanged::<N>(size).map(|lanes| lanes.map(|lane| both[lane as usize]))
            });
            assert!((0..N * N).all(|k| rows[k % N][k / N] == k));
        }
        check::<2>();
        check::<8>();
        check::<16>();
    }
}
