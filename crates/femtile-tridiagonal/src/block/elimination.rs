//! One block row of the forward pass for as many systems as a SIMD vector has lanes.

use std::ops::Range;

use pulp::{Simd, WithSimd};

use femtile_device::cpu::Wide;

use super::choosing::Choosing;
use crate::Stability;

/// Repeats a statement for each constant below M, so that every loop within has constant bounds.
macro_rules! each_below {
    ($m:ident, |$k:ident| $work:expr) => {
        each_below!(@ $m, $k, $work, 0 1 2 3 4 5 6 7 8 9)
    };
    (@ $m:ident, $k:ident, $work:expr, $($value:literal)+) => {
        $({
            const $k: usize = $value;
            if $k < $m {
                $work;
            }
        })+
    };
}

/// Blocks and block vectors of one row, entry by entry, a system a lane.
type Block<T, S, const M: usize> = [[<T as Wide>::Vector<S>; M]; M];
type Column<T, S, const M: usize> = [<T as Wide>::Vector<S>; M];

/// The inputs from the row before: $A_i$, $C_{i-1}^*$ and $d_{i-1}^*$.
pub(super) type Before<'a, T, S, const M: usize> =
    (&'a Block<T, S, M>, &'a Block<T, S, M>, &'a Column<T, S, M>);

/// Makes $C_i$ and $d_i$ into $C_i^*$ and $d_i^*$; `c` is none in the last row.
///
/// Returns `flag` with a one in the lanes whose pivots or results are unsound, as the reference defines it.
///
/// Differs from Gauss–Jordan elimination in that rows above a pivot are cleared last: M³ / 3 products less.
#[inline(always)]
pub(super) fn eliminate_row<T: Choosing, S: Simd, const M: usize>(
    simd: S,
    before: Option<Before<'_, T, S, M>>,
    b: &Block<T, S, M>,
    c: Option<&mut Block<T, S, M>>,
    d: &mut Column<T, S, M>,
    stability: Stability,
    mut flag: T::Vector<S>,
) -> T::Vector<S> {
    let mut w = *b;
    if let Some((a, c_star, d_star)) = before {
        subtract_product::<T, S, M>(simd, &mut w, a, c_star);
        for i in 0..M {
            for k in 0..M {
                d[i] = T::minus_product(simd, d[i], a[i][k], d_star[k]);
            }
        }
    }
    if stability == Stability::PartialPivoting {
        let c = c.map_or(&mut [][..], |c| c.as_flattened_mut());
        return simd.vectorize(Pivoted::<T, S> { simd, w: w.as_flattened_mut(), c, d, flag });
    }
    let mut inverse = [T::splat(simd, T::ONE); M];
    each_below!(M, |K| flag = eliminate_below::<T, S, M, K>(simd, &mut w, d, b[K][K], &mut inverse[K], flag));
    if let Some(c) = c {
        let one = T::splat(simd, T::ONE);
        each_below!(M, |K| subtract_rows::<T, S, M>(simd, &w[K], 0..K, c, K, one));
        each_below!(M, |K| {
            let row = M - 1 - K;
            subtract_rows::<T, S, M>(simd, &w[row], row + 1..M, c, row, inverse[row]);
        });
    }
    for k in (0..M).rev() {
        d[k] = T::product(simd, d[k], inverse[k]);
        flag = T::flag_infinite(simd, flag, d[k]);
        for i in 0..k {
            d[i] = T::minus_product(simd, d[i], w[i][k], d[k]);
        }
    }
    flag
}

/// Clears column K below the diagonal, keeping factors in its place.
#[inline(always)]
fn eliminate_below<T: Choosing, S: Simd, const M: usize, const K: usize>(
    simd: S,
    w: &mut Block<T, S, M>,
    d: &mut Column<T, S, M>,
    diagonal: T::Vector<S>,
    inverse: &mut T::Vector<S>,
    flag: T::Vector<S>,
) -> T::Vector<S> {
    let pivot_row = w[K];
    *inverse = T::quotient(simd, T::splat(simd, T::ONE), pivot_row[K]);
    for i in K + 1..M {
        let factor = T::product(simd, w[i][K], *inverse);
        w[i][K] = factor;
        for j in K + 1..M {
            w[i][j] = T::minus_product(simd, w[i][j], factor, pivot_row[j]);
        }
        d[i] = T::minus_product(simd, d[i], factor, d[K]);
    }
    let least = T::product(simd, T::splat(simd, T::EPSILON), diagonal);
    T::flag_unsound(simd, flag, pivot_row[K], least)
}

/// Row `row` of X minus `factors` times the rows `others` of X, all times `scale`.
#[inline(always)]
fn subtract_rows<T: Choosing, S: Simd, const M: usize>(
    simd: S,
    factors: &Column<T, S, M>,
    others: Range<usize>,
    x: &mut Block<T, S, M>,
    row: usize,
    scale: T::Vector<S>,
) {
    let mut values = x[row];
    for k in others {
        let factor = factors[k];
        for j in 0..M {
            values[j] = T::minus_product(simd, values[j], factor, x[k][j]);
        }
    }
    for value in &mut values {
        *value = T::product(simd, *value, scale);
    }
    x[row] = values;
}

/// $W := W - A X$.
#[inline(always)]
fn subtract_product<T: Choosing, S: Simd, const M: usize>(
    simd: S,
    w: &mut Block<T, S, M>,
    a: &Block<T, S, M>,
    x: &Block<T, S, M>,
) {
    for i in 0..M {
        let mut row = w[i];
        for k in 0..M {
            let factor = a[i][k];
            for j in 0..M {
                row[j] = T::minus_product(simd, row[j], factor, x[k][j]);
            }
        }
        w[i] = row;
    }
}

/// Gauss–Jordan elimination with row exchanges of W [X | x] = [C | d], for blocks of any size.
///
/// One body for all sizes: it is the careful choice, not the fast one, and keeps the program small.
struct Pivoted<'a, T: Choosing, S: Simd> {
    simd: S,
    w: &'a mut [T::Vector<S>],
    /// Empty in the last row.
    c: &'a mut [T::Vector<S>],
    d: &'a mut [T::Vector<S>],
    flag: T::Vector<S>,
}

impl<T: Choosing, S: Simd> Pivoted<'_, T, S> {
    /// Brings the largest entry of column k, from the diagonal down, into row k, lane by lane.
    #[inline(always)]
    fn raise_pivot(&mut self, k: usize) {
        let (simd, m) = (self.simd, self.d.len());
        for i in k + 1..m {
            let keys = (self.w[k * m + k], self.w[i * m + k]);
            for rows in [&mut *self.w, &mut *self.c] {
                let (upper, lower) = rows.split_at_mut((i * m).min(rows.len()));
                for (x, y) in upper.iter_mut().skip(k * m).zip(lower.iter_mut().take(m)) {
                    T::exchange_by(simd, keys, x, y);
                }
            }
            let (upper, lower) = self.d.split_at_mut(i);
            T::exchange_by(simd, keys, &mut upper[k], &mut lower[0]);
        }
    }
}

impl<T: Choosing, S: Simd> WithSimd for Pivoted<'_, T, S> {
    type Output = T::Vector<S>;

    /// Runs on the vectors that it was made for.
    #[inline(always)]
    fn with_simd<Same: Simd>(mut self, _: Same) -> T::Vector<S> {
        let (simd, m, zero) = (self.simd, self.d.len(), T::splat(self.simd, T::ZERO));
        for k in 0..m {
            self.raise_pivot(k);
            let pivot = self.w[k * m + k];
            self.flag = T::flag_unsound(simd, self.flag, pivot, zero);
            let inverse = T::quotient(simd, T::splat(simd, T::ONE), pivot);
            for i in (0..m).filter(|&i| i != k) {
                let factor = T::product(simd, self.w[i * m + k], inverse);
                for rows in [&mut *self.w, &mut *self.c] {
                    subtract_row::<T, S>(simd, rows, (i * m, k * m, m), factor);
                }
                subtract_row::<T, S>(simd, self.d, (i, k, 1), factor);
            }
            let of_c = if self.c.is_empty() { 0..0 } else { k * m..(k + 1) * m };
            let pivot_row = self.w[k * m..(k + 1) * m].iter_mut().chain(&mut self.c[of_c]);
            for x in pivot_row.chain(&mut self.d[k..=k]) {
                *x = T::product(simd, *x, inverse);
            }
        }
        self.d.iter().fold(self.flag, |flag, &d| T::flag_infinite(simd, flag, d))
    }
}

/// Subtracts `factor` times a row from another; rows are given by where they begin and their length.
#[inline(always)]
fn subtract_row<T: Choosing, S: Simd>(
    simd: S,
    rows: &mut [T::Vector<S>],
    (row, other, len): (usize, usize, usize),
    factor: T::Vector<S>,
) {
    if rows.is_empty() {
        return;
    }
    for j in 0..len {
        rows[row + j] = T::minus_product(simd, rows[row + j], factor, rows[other + j]);
    }
}
