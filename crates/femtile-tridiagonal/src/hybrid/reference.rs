use std::ops::Range;

use femtile_device::Scalar;

use crate::pcr::reference::{UnitRows, finite_throughout};

/// Chunks that a system is cut into, as many as a warp of a GPU has threads.
const CHUNKS: usize = 32;

/// Rows of a chunk at least, so that there is something between its ends.
const MIN_ROWS: usize = 4;

/// Solves one system in chunks; `Err` is a row that could not be solved.
///
/// Within each chunk every value is expressed by those at its two ends; the ends form a tridiagonal system that
/// parallel cyclic reduction solves.
///
/// # Source
/// `[laszlo2016]`, Alg. 3 to 5. Differs: Alg. 3 line 11 with $d_{i+1}$, Alg. 4 line 17 with $d_{i-1}$ and the
/// values of step $P$, Alg. 5 without the factor $r$ and up to $M - 2$; chunks may differ in length.
pub(crate) fn hybrid<T: Scalar>(a: &[T], b: &[T], c: &[T], d: &[T]) -> Result<Vec<T>, usize> {
    let n = b.len();
    let length = n.div_ceil(CHUNKS).max(MIN_ROWS);
    let chunks: Vec<_> = (0..n).step_by(length).map(|first| first..(first + length).min(n)).collect();
    let mut lower: Vec<T> = (0..n).map(|i| if i > 0 { a[i] } else { T::ZERO }).collect();
    let mut upper: Vec<T> = (0..n).map(|i| if i + 1 < n { c[i] } else { T::ZERO }).collect();
    let (mut diagonal, mut u) = (b.to_vec(), d.to_vec());
    for chunk in &chunks {
        express_by_ends(chunk, &mut lower, &mut diagonal, &mut upper, &mut u)?;
    }
    let is_end = |i: &usize| chunks.iter().any(|chunk| *i == chunk.start || i + 1 == chunk.end);
    let ends: Vec<usize> = (0..n).filter(is_end).collect();
    let of = |values: &[T]| ends.iter().map(|&i| values[i]).collect::<Vec<T>>();
    let rows = UnitRows::new(&of(&lower), &of(&diagonal), &of(&upper), &of(&u)).map_err(|end| ends[end])?;
    for (&i, value) in ends.iter().zip(every_second_by_pcr(rows)) {
        u[i] = value;
    }
    for chunk in &chunks {
        let (first, last) = (u[chunk.start], u[chunk.end - 1]);
        for i in inner(chunk) {
            u[i] = u[i] - lower[i] * first - upper[i] * last;
        }
    }
    finite_throughout(u)
}

/// The rows between the ends of a chunk.
fn inner(chunk: &Range<usize>) -> Range<usize> {
    chunk.start + 1..(chunk.end - 1).max(chunk.start + 1)
}

/// First phase: $a_i u_0 + u_i + c_i u_{M-1} = d_i$ for the rows between the ends, which are taken from the ends' rows.
fn express_by_ends<T: Scalar>(
    chunk: &Range<usize>,
    a: &mut [T],
    b: &mut [T],
    c: &mut [T],
    d: &mut [T],
) -> Result<(), usize> {
    let (first, last, inner) = (chunk.start, chunk.end - 1, inner(chunk));
    for i in inner.clone() {
        let mut pivot = b[i];
        if i > inner.start {
            pivot -= a[i] * c[i - 1];
            d[i] -= a[i] * d[i - 1];
            a[i] = -(a[i] * a[i - 1]);
        }
        if pivot == T::ZERO || !pivot.is_finite() {
            return Err(i);
        }
        let r = T::ONE / pivot;
        (a[i], c[i], d[i]) = (a[i] * r, c[i] * r, d[i] * r);
    }
    for i in inner.clone().rev().skip(1) {
        d[i] -= c[i] * d[i + 1];
        a[i] -= c[i] * a[i + 1];
        c[i] = -(c[i] * c[i + 1]);
    }
    if !inner.is_empty() {
        let (after, before) = (inner.start, inner.end - 1);
        b[first] -= c[first] * a[after];
        d[first] -= c[first] * d[after];
        c[first] = -(c[first] * c[after]);
        b[last] -= a[last] * c[before];
        d[last] -= a[last] * d[before];
        a[last] = -(a[last] * a[before]);
    }
    Ok(())
}

/// Middle phase: the odd rows by parallel cyclic reduction among themselves, then the even rows from their neighbours.
fn every_second_by_pcr<T: Scalar>(mut rows: UnitRows<T>) -> Vec<T> {
    let n = rows.d.len();
    let mut s = 1;
    while s < n {
        let reduced: Vec<_> = (1..n).step_by(2).map(|i| (i, rows.reduced(i, s))).collect();
        reduced.into_iter().for_each(|(i, row)| rows.set(i, row));
        s *= 2;
    }
    for i in (0..n).step_by(2) {
        rows.d[i] = rows.value(i, 1);
    }
    rows.d
}
