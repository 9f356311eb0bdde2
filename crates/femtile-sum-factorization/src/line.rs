//! One line of a tensor, a SIMD vector per entry.

use femtile_device::cpu::Wide;
use pulp::Simd;

pub(crate) type V<T, S> = <T as Wide>::Vector<S>;

/// Returns $\sum_j s_j x_j$ over the first `n ≥ 1` entries.
#[inline(always)]
pub(crate) fn dot<T: Wide, S: Simd, const N: usize>(
    simd: S,
    s: &[T; N],
    x: &[V<T, S>; N],
    n: usize,
) -> V<T, S> {
    let mut sum = T::product(simd, T::splat(simd, s[0]), x[0]);
    for j in 1..n {
        sum = T::plus_product(simd, sum, T::splat(simd, s[j]), x[j]);
    }
    sum
}

/// Returns sums of mirrored values, the middle one unchanged, and their differences.
#[inline(always)]
pub(crate) fn split<T: Wide, S: Simd, const N: usize>(simd: S, x: &[V<T, S>; N]) -> [[V<T, S>; N]; 2] {
    let zero = T::splat(simd, T::ZERO);
    let (mut sums, mut differences) = ([zero; N], [zero; N]);
    for j in 0..N / 2 {
        sums[j] = T::plus(simd, x[j], x[N - 1 - j]);
        differences[j] = T::minus(simd, x[j], x[N - 1 - j]);
    }
    if N % 2 == 1 {
        sums[N / 2] = x[N / 2];
    }
    [sums, differences]
}

/// Combines even and odd parts: the first half of a line is their sum, the second half their difference, with the sign
/// of the table's parity.
#[inline(always)]
pub(crate) fn combined<T: Wide, S: Simd, const M: usize, const IS_ODD: bool>(
    simd: S,
    [even, odd]: &[[V<T, S>; M]; 2],
) -> [V<T, S>; M] {
    let mut y = [T::splat(simd, T::ZERO); M];
    for i in 0..M / 2 {
        y[i] = T::plus(simd, even[i], odd[i]);
        y[M - 1 - i] = if IS_ODD { T::minus(simd, odd[i], even[i]) } else { T::minus(simd, even[i], odd[i]) };
    }
    if M % 2 == 1 {
        y[M / 2] = if IS_ODD { odd[M / 2] } else { even[M / 2] };
    }
    y
}

/// A product of a table and a line.
pub(super) trait Act<T: Wide, const M: usize, const N: usize> {
    /// Applies the table to a line.
    fn act<S: Simd>(&self, simd: S, x: &[V<T, S>; N]) -> [V<T, S>; M];
}

/// A table without symmetry.
pub(super) struct Plain<'a, T, const M: usize, const N: usize>(pub &'a [[T; N]; M]);

impl<T: Wide, const M: usize, const N: usize> Act<T, M, N> for Plain<'_, T, M, N> {
    #[inline(always)]
    fn act<S: Simd>(&self, simd: S, x: &[V<T, S>; N]) -> [V<T, S>; M] {
        let mut y = [T::splat(simd, T::ZERO); M];
        for i in 0..M {
            y[i] = dot::<T, S, N>(simd, &self.0[i], x, N);
        }
        y
    }
}

/// The even and odd halves of a symmetric table.
pub(super) struct Mirrored<'a, T, const M: usize, const N: usize, const IS_ODD: bool> {
    pub even: &'a [[T; N]; M],
    pub odd: &'a [[T; N]; M],
}

impl<T: Wide, const M: usize, const N: usize, const IS_ODD: bool> Act<T, M, N>
    for Mirrored<'_, T, M, N, IS_ODD>
{
    #[inline(always)]
    fn act<S: Simd>(&self, simd: S, x: &[V<T, S>; N]) -> [V<T, S>; M] {
        let line = split::<T, S, N>(simd, x);
        let zero = T::splat(simd, T::ZERO);
        let mut halves = [[zero; M]; 2];
        for i in 0..M.div_ceil(2) {
            halves[0][i] = dot::<T, S, N>(simd, &self.even[i], &line[0], N.div_ceil(2));
        }
        if N > 1 {
            for i in 0..M.div_ceil(2) {
                halves[1][i] = dot::<T, S, N>(simd, &self.odd[i], &line[1], N / 2);
            }
        }
        combined::<T, S, M, IS_ODD>(simd, &halves)
    }
}
