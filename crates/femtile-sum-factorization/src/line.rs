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
        by_halves::<T, S, M, N, IS_ODD>(
            simd,
            #[inline(always)]
            |half, i, j| T::splat(simd, if half == 0 { self.even[i][j] } else { self.odd[i][j] }),
            x,
        )
    }
}

/// Applies the halves of a symmetric table, whose entries `entry` returns, to a line.
#[inline(always)]
fn by_halves<T: Wide, S: Simd, const M: usize, const N: usize, const IS_ODD: bool>(
    simd: S,
    entry: impl Fn(usize, usize, usize) -> V<T, S>,
    x: &[V<T, S>; N],
) -> [V<T, S>; M] {
    let line = split::<T, S, N>(simd, x);
    let mut halves = [[T::splat(simd, T::ZERO); M]; 2];
    for half in 0..2 {
        let n = (N + 1 - half) / 2;
        for i in 0..if n > 0 { M.div_ceil(2) } else { 0 } {
            let mut sum = T::product(simd, entry(half, i, 0), line[half][0]);
            for j in 1..n {
                sum = T::plus_product(simd, sum, entry(half, i, j), line[half][j]);
            }
            halves[half][i] = sum;
        }
    }
    combined::<T, S, M, IS_ODD>(simd, &halves)
}

/// The longest lines whose table registers hold beside them.
const IN_REGISTERS: usize = 4;

/// A square symmetric table for all lines of a cube: a small one is read once, into vectors.
pub(super) struct Repeated<'a, T: Wide, S: Simd, const N: usize, const IS_ODD: bool> {
    /// Of small tables the halves, an entry in all lanes.
    vectors: [[[V<T, S>; N]; N]; 2],
    table: Mirrored<'a, T, N, N, IS_ODD>,
}

impl<'a, T: Wide, S: Simd, const N: usize, const IS_ODD: bool> Repeated<'a, T, S, N, IS_ODD> {
    /// Takes the halves of a table.
    #[inline(always)]
    pub fn new(simd: S, [even, odd]: [&'a [[T; N]; N]; 2]) -> Self {
        let mut vectors = [[[T::splat(simd, T::ZERO); N]; N]; 2];
        if N <= IN_REGISTERS {
            for i in 0..N {
                for j in 0..N {
                    vectors[0][i][j] = T::splat(simd, even[i][j]);
                    vectors[1][i][j] = T::splat(simd, odd[i][j]);
                }
            }
        }
        Self { vectors, table: Mirrored { even, odd } }
    }

    /// Applies the table to a line.
    #[inline(always)]
    pub fn act(&self, simd: S, x: &[V<T, S>; N]) -> [V<T, S>; N] {
        if N <= IN_REGISTERS {
            by_halves::<T, S, N, N, IS_ODD>(
                simd,
                #[inline(always)]
                |half, i, j| self.vectors[half][i][j],
                x,
            )
        } else {
            self.table.act(simd, x)
        }
    }
}
