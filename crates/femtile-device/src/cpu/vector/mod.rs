//! SIMD vectors for elimination: arithmetic, masks, non-temporal stores, transposes.

mod runs;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::Scalar;
pub use runs::{Runs, ShortRuns};

/// A SIMD vector.
///
/// A value exists only if the processor has the instructions: the ways to make one are unsafe.
pub trait Vector<T: Scalar>: Copy {
    /// Number of lanes.
    const LANES: usize;
    /// A boolean for each lane.
    type Mask: Copy;

    /// Runs `work` compiled for the instructions of this vector, and for no other.
    ///
    /// `work` should be a closure marked `#[inline(always)]`. Unlike [`Cpu::vectorize`](crate::Cpu::vectorize) it is
    /// compiled once, for code that is generic over the vector already.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn vectorize<R>(work: impl FnOnce() -> R) -> R;

    /// Loads the values at `from`.
    ///
    /// # Safety
    /// The processor has the instructions, and [`Vector::LANES`] values can be read.
    unsafe fn load(from: *const T) -> Self;
    /// Returns a vector with `value` in all lanes.
    ///
    /// # Safety
    /// The processor has the instructions.
    unsafe fn splat(value: T) -> Self;
    /// Writes all lanes to `to`.
    ///
    /// # Safety
    /// [`Vector::LANES`] values can be written, and no other thread reads or writes them.
    unsafe fn store(self, to: *mut T);
    /// Writes all lanes to `to` by a non-temporal store.
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
    /// Sum with a product, rounded once if the instructions have it.
    fn plus_product(self, one: Self, other: Self) -> Self;
    /// Quotient.
    fn div(self, other: Self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// The lanes in which this one is larger; false if either is NaN.
    fn above(self, other: Self) -> Self::Mask;
    /// The lanes in which both masks are true.
    fn both(one: Self::Mask, other: Self::Mask) -> Self::Mask;
    /// Returns whether all lanes are true.
    fn is_everywhere(mask: Self::Mask) -> bool;
    /// Selects `yes` in lanes in which the mask is true, and `no` elsewhere.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
    /// Copies a square: value `j` of `from(i)` to value `i` of `to(j)`, for `i, j` below [`Vector::LANES`].
    ///
    /// # Safety
    /// As [`Vector::load`] and [`Vector::store`] for all of these pointers.
    unsafe fn transpose(from: impl Fn(usize) -> *const T, to: impl Fn(usize) -> *mut T);

    /// [`Vector::transpose`] of the first `n` values of each `from(i)`: no others are read, and `to(j)` is called for j < n
    /// only.
    ///
    /// # Safety
    /// The processor has the instructions, and `n` values can be read at each `from(i)`; as [`Vector::store`] for the others.
    unsafe fn transpose_first(n: usize, from: impl Fn(usize) -> *const T, to: impl Fn(usize) -> *mut T);

    /// True in all lanes.
    #[inline(always)]
    fn always(self) -> Self::Mask {
        // SAFETY: the processor has the instructions, as a value exists.
        unsafe { Self::splat(T::ONE).above(Self::splat(T::ZERO)) }
    }

    /// The lanes that are finite.
    #[inline(always)]
    fn finite(self) -> Self::Mask {
        // SAFETY: the processor has the instructions, as a value exists.
        unsafe { Self::splat(T::ONE / T::ZERO).above(self.abs()) }
    }

    /// The lanes in which this pivot is finite and exceeds the rounding error of the diagonal entry from
    /// which it was eliminated.
    #[inline(always)]
    fn is_pivot_of(self, diagonal: Self) -> Self::Mask {
        // SAFETY: the processor has the instructions, as a value exists.
        let rounding = unsafe { Self::splat(T::EPSILON) }.mul(diagonal.abs());
        Self::both(self.abs().above(rounding), self.finite())
    }
}

/// Makes non-temporal stores visible to other threads.
#[inline(always)]
pub fn fence() {
    // Miri supports neither non-temporal stores nor this instruction.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: every x86-64 processor has this instruction.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Prefetches a cache line into the second-level cache; any address is allowed.
#[inline(always)]
pub fn prefetch<T>(address: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has this instruction, and it never faults.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The vectors of a precision, by SIMD level.
pub trait Lanes: Scalar {
    /// Without explicit vectors.
    type Plain: ShortRuns<Self>;
    /// 256 bits.
    #[cfg(target_arch = "x86_64")]
    type Avx2: ShortRuns<Self>;
    /// 512 bits.
    #[cfg(target_arch = "x86_64")]
    type Avx512: ShortRuns<Self>;
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
pub struct Plain<T, const N: usize>([T; N]);

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
    unsafe fn vectorize<R>(work: impl FnOnce() -> R) -> R {
        work()
    }

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
    fn plus_product(self, one: Self, other: Self) -> Self {
        self.add(one.mul(other))
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

    #[inline(always)]
    unsafe fn transpose_first(n: usize, from: impl Fn(usize) -> *const T, to: impl Fn(usize) -> *mut T) {
        for j in 0..n.min(N) {
            // SAFETY: the caller lets n values be read from N places.
            let column: [T; N] = std::array::from_fn(|i| unsafe { from(i).add(j).read() });
            // SAFETY: the caller lets N values be written to n places.
            unsafe { to(j).cast::<[T; N]>().write(column) }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::cpu::SimdLevel;

    use super::*;

    fn transposes<T: Lanes, V: Vector<T>>() {
        let n = V::LANES;
        let from: Vec<T> = (0..n * n).map(|k| T::from_f64(k as f64)).collect();
        let mut to = vec![T::ZERO; n * n];
        let target = to.as_mut_ptr();
        // SAFETY: both arrays hold n × n values, and the processor has the level of the vectors.
        unsafe {
            V::vectorize(
                #[inline(always)]
                || V::transpose(|i| from.as_ptr().add(i * n), |j| target.add(j * n)),
            );
        }
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            assert_eq!(to[j * n + i], from[i * n + j], "{i}, {j} of {n}");
        }
        (0..=n).for_each(|count| transposes_first::<T, V>(count));
    }

    /// The rows end with their last value, so that whatever is read behind belongs to the next one or to nothing.
    fn transposes_first<T: Lanes, V: Vector<T>>(count: usize) {
        let n = V::LANES;
        let from: Vec<Box<[T]>> =
            (0..n).map(|i| (0..count).map(|j| T::from_f64((i * n + j) as f64)).collect()).collect();
        let mut to = vec![T::from_f64(-1.0); n * n];
        let target = to.as_mut_ptr();
        // SAFETY: each row holds `count` values, the target n × n, and the processor has the level of the vectors.
        unsafe {
            V::vectorize(
                #[inline(always)]
                || V::transpose_first(count, |i| from[i].as_ptr(), |j| target.add(j * n)),
            );
        }
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let wanted = if j < count { from[i][j] } else { T::from_f64(-1.0) };
            assert_eq!(to[j * n + i], wanted, "{i}, {j} of {n}, {count} a row");
        }
    }

    #[test]
    fn every_vector_transposes_a_square_of_its_size() {
        for level in SimdLevel::available() {
            match level {
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx2 => {
                    transposes::<f64, x86::F64x4>();
                    transposes::<f32, x86::F32x8>();
                }
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx512 => {
                    transposes::<f64, x86::F64x8>();
                    transposes::<f32, x86::F32x16>();
                }
                _ => {
                    transposes::<f64, Plain<f64, 4>>();
                    transposes::<f32, Plain<f32, 8>>();
                }
            }
        }
    }
}
