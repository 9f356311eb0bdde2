//! Runs of few values at a place for each lane, in and out of vectors: shorter than squares of [`Vector::transpose`].

// Loops over lanes: closures of iterators would not be compiled for these vectors.
#![allow(clippy::needless_range_loop)]

#[cfg(target_arch = "x86_64")]
mod x86;

use super::{Plain, Vector};
use crate::Scalar;

/// Reads and adds `K` consecutive values at a place for each lane, as `K` vectors.
///
/// Places of different lanes may be the same: values are added lane by lane, in order.
pub trait Runs<T: Scalar, const K: usize>: Vector<T> {
    /// Returns the `K` values at `from(lane)` for each lane.
    ///
    /// # Safety
    /// The processor has the instructions, and `K` values can be read at each place.
    unsafe fn read_runs(from: impl Fn(usize) -> *const T) -> [Self; K];
    /// Adds each lane of the vectors to the `K` values at `to(lane)`.
    ///
    /// # Safety
    /// `K` values can be read and written at each place, and no other thread uses them.
    unsafe fn add_runs(these: [Self; K], to: impl Fn(usize) -> *mut T);
}

/// A vector that moves runs of one, two and four values.
pub trait ShortRuns<T: Scalar>: Runs<T, 1> + Runs<T, 2> + Runs<T, 4> {}

impl<T: Scalar, V: Runs<T, 1> + Runs<T, 2> + Runs<T, 4>> ShortRuns<T> for V {}

impl<T: Scalar, const N: usize, const K: usize> Runs<T, K> for Plain<T, N> {
    #[inline(always)]
    unsafe fn read_runs(from: impl Fn(usize) -> *const T) -> [Self; K] {
        let mut found = [Plain([T::ZERO; N]); K];
        for lane in 0..N {
            for k in 0..K {
                // SAFETY: what the caller promises.
                found[k].0[lane] = unsafe { from(lane).add(k).read() };
            }
        }
        found
    }

    #[inline(always)]
    unsafe fn add_runs(these: [Self; K], to: impl Fn(usize) -> *mut T) {
        for lane in 0..N {
            for k in 0..K {
                // SAFETY: what the caller promises.
                unsafe { *to(lane).add(k) += these[k].0[lane] };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Lanes;
    use super::*;
    use crate::cpu::SimdLevel;
    #[cfg(target_arch = "x86_64")]
    use crate::cpu::vector::x86;

    /// Reads runs of neighbouring places, which overlap, and adds them to others if two lanes have the same
    /// place.
    fn runs_are_read_and_added<T: Lanes, V: ShortRuns<T>>() {
        let n = V::LANES;
        let from: Vec<T> = (0..3 * n + 4).map(|k| T::from_f64((k * k) as f64)).collect();
        let place = |lane: usize| 3 * (lane / 2) + lane % 3;
        let wanted = |n_values: usize| {
            let mut sums: Vec<T> = from.clone();
            for lane in 0..n {
                (0..n_values).for_each(|k| sums[place(lane) + k] += from[lane + k]);
            }
            sums
        };
        let mut found: [Vec<T>; 3] = std::array::from_fn(|_| from.clone());
        let to = found.each_mut().map(|sums| sums.as_mut_ptr());
        // SAFETY: all places lie within the arrays, and the processor has the level of the vectors.
        unsafe {
            V::vectorize(
                #[inline(always)]
                || {
                    let from = |lane: usize| from.as_ptr().add(lane);
                    <V as Runs<T, 1>>::add_runs(V::read_runs(from), |lane| to[0].add(place(lane)));
                    <V as Runs<T, 2>>::add_runs(V::read_runs(from), |lane| to[1].add(place(lane)));
                    <V as Runs<T, 4>>::add_runs(V::read_runs(from), |lane| to[2].add(place(lane)));
                },
            );
        }
        assert_eq!(found, [1, 2, 4].map(wanted), "{n} lanes");
    }

    #[test]
    fn every_vector_reads_and_adds_runs() {
        for level in SimdLevel::available() {
            match level {
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx2 => {
                    runs_are_read_and_added::<f64, x86::F64x4>();
                    runs_are_read_and_added::<f32, x86::F32x8>();
                }
                #[cfg(target_arch = "x86_64")]
                SimdLevel::Avx512 => {
                    runs_are_read_and_added::<f64, x86::F64x8>();
                    runs_are_read_and_added::<f32, x86::F32x16>();
                }
                _ => {
                    runs_are_read_and_added::<f64, Plain<f64, 4>>();
                    runs_are_read_and_added::<f32, Plain<f32, 8>>();
                }
            }
        }
    }
}
