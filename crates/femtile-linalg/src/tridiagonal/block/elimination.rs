//! One block row of the forward pass for as many systems as a SIMD vector has lanes.

use pulp::{Simd, WithSimd};

use super::wide::Wide;
use crate::tridiagonal::Stability;

/// Blocks and block vectors of one row, entry by entry, a system a lane.
type Block<T, S, const M: usize> = [[<T as Wide>::Vector<S>; M]; M];
type Column<T, S, const M: usize> = [<T as Wide>::Vector<S>; M];

/// What the row before gives: $A_i$, $C_{i-1}^*$ and $d_{i-1}^*$.
pub(super) type Before<'a, T, S, const M: usize> =
    (&'a Block<T, S, M>, &'a Block<T, S, M>, &'a Column<T, S, M>);

/// Makes $C_i$ and $d_i$ into $C_i^*$ and $d_i^*$; `c` is none in the last row.
///
/// Returns `flag` with a one in the lanes whose pivots or results are unsound, as the reference defines it.
///
/// Differs from Gauss–Jordan elimination in that rows above a pivot are cleared last: M³ / 3 products less.
#[inline(always)]
pub(super) fn eliminate_row<T: Wide, S: Simd, const M: usize>(
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
    let (one, epsilon) = (T::splat(simd, T::ONE), T::splat(simd, T::EPSILON));
    let mut inverse = [one; M];
    for k in 0..M {
        let least = T::product(simd, epsilon, b[k][k]);
        flag = T::flag_unsound(simd, flag, w[k][k], least);
        inverse[k] = T::quotient(simd, one, w[k][k]);
        for i in k + 1..M {
            let factor = T::product(simd, w[i][k], inverse[k]);
            w[i][k] = factor;
            let pivot_row = w[k];
            for (entry, above) in w[i].iter_mut().zip(pivot_row).skip(k + 1) {
                *entry = T::minus_product(simd, *entry, factor, above);
            }
            d[i] = T::minus_product(simd, d[i], factor, d[k]);
        }
    }
    if let Some(c) = c {
        substitute_down::<T, S, M>(simd, &w, c);
        substitute_up::<T, S, M>(simd, &w, &inverse, c);
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

/// $W := W - A X$.
#[inline(always)]
fn subtract_product<T: Wide, S: Simd, const M: usize>(
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

/// Solves with the unit lower triangle of `w`.
#[inline(always)]
fn substitute_down<T: Wide, S: Simd, const M: usize>(simd: S, w: &Block<T, S, M>, x: &mut Block<T, S, M>) {
    for i in 1..M {
        let mut row = x[i];
        for k in 0..i {
            let factor = w[i][k];
            for j in 0..M {
                row[j] = T::minus_product(simd, row[j], factor, x[k][j]);
            }
        }
        x[i] = row;
    }
}

/// Solves with the upper triangle of `w`, whose diagonal is given inverted.
#[inline(always)]
fn substitute_up<T: Wide, S: Simd, const M: usize>(
    simd: S,
    w: &Block<T, S, M>,
    inverse: &Column<T, S, M>,
    x: &mut Block<T, S, M>,
) {
    for i in (0..M).rev() {
        let mut row = x[i];
        for k in i + 1..M {
            let factor = w[i][k];
            for j in 0..M {
                row[j] = T::minus_product(simd, row[j], factor, x[k][j]);
            }
        }
        for entry in &mut row {
            *entry = T::product(simd, *entry, inverse[i]);
        }
        x[i] = row;
    }
}

/// Gauss–Jordan elimination with row exchanges of W [X | x] = [C | d], for blocks of any size.
///
/// One body for all sizes: it is the careful choice, not the fast one, and keeps the program small.
struct Pivoted<'a, T: Wide, S: Simd> {
    simd: S,
    w: &'a mut [T::Vector<S>],
    /// Empty in the last row.
    c: &'a mut [T::Vector<S>],
    d: &'a mut [T::Vector<S>],
    flag: T::Vector<S>,
}

impl<T: Wide, S: Simd> Pivoted<'_, T, S> {
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

impl<T: Wide, S: Simd> WithSimd for Pivoted<'_, T, S> {
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
fn subtract_row<T: Wide, S: Simd>(
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
