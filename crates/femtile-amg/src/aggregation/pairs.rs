//! Pairwise aggregation.

use femtile_device::parallel;

use crate::check::diagonal_entry;
use crate::setup::galerkin::galerkin;
use crate::setup::rows::{PIECE, RowAccess, Rows};

/// Rows whose diagonal entry is this many times the sum of the sizes of the others converge by smoothing alone.
const DOMINANT: f64 = 1.5;
/// Qualities that differ by less are equal: the first one counts.
const ROUNDED: f64 = 1e-9;
/// Stands for the aggregate of a row without one.
const NONE: u32 = u32::MAX;

/// Returns the piecewise constant prolongator P from aggregates of up to $2^\text{passes}$ rows of a symmetric matrix, visited in
/// the given order and numbered as they are met.
pub(super) fn aggregates(s: &Rows<f64>, order: &[u32], passes: usize) -> Rows<f64> {
    let is_dominant = parallel::map(s.n_rows(), PIECE, |row| {
        let (columns, values) = s.row(row);
        let others = columns.iter().zip(values).filter(|&(&column, _)| column as usize != row);
        diagonal_entry(s, row) >= DOMINANT * others.map(|(_, value)| value.abs()).sum::<f64>()
    });
    let mut p = prolongator(&pairs(s, order.iter().copied(), &is_dominant));
    for _ in 1..passes {
        let coarse = galerkin(s, &p, &p.transpose());
        let n = coarse.n_rows();
        let pairs = pairs(&coarse, 0..n as u32, &vec![false; n]);
        p.n_cols = pairs.n;
        p.columns.iter_mut().for_each(|aggregate| *aggregate = pairs.of_row[*aggregate as usize]);
    }
    p
}

/// Disjoint pairs of rows, or single rows.
struct Pairs {
    of_row: Vec<u32>,
    n: usize,
}

/// Joins each row with the free one that gives the pair the best quality,
///
/// $$ q_{ij} = \left(\frac1{d_i} + \frac1{d_j}\right) \left(-s_{ij} + \frac{\sigma_i \sigma_j}{\sigma_i + \sigma_j}\right), $$
///
/// with the diagonal entries d and the row sums σ; for M-matrices $1/q$ bounds the two-level condition number up to a factor.
///
/// # Source
/// `[notay2012]`, with $\mu = 2/q$.
fn pairs(s: &Rows<f64>, order: impl Iterator<Item = u32>, is_left_out: &[bool]) -> Pairs {
    let n = s.n_rows();
    let diagonal = parallel::map(n, PIECE, |row| diagonal_entry(s, row));
    let sums = parallel::map(n, PIECE, |row| s.row(row).1.iter().sum::<f64>());
    let is_free = |of_row: &[u32], row: usize| of_row[row] == NONE && !is_left_out[row];
    let mut pairs = Pairs { of_row: vec![NONE; n], n: 0 };
    for row in order {
        let i = row as usize;
        if !is_free(&pairs.of_row, i) {
            continue;
        }
        let (mut best, mut partner) = (0.0, i);
        let (columns, values) = s.row(i);
        for (j, value) in columns.iter().map(|&column| column as usize).zip(values) {
            if j == i || !is_free(&pairs.of_row, j) {
                continue;
            }
            let sum = sums[i] + sums[j];
            let of_sums = if sum > 0.0 { sums[i] * sums[j] / sum } else { 0.0 };
            let quality = (1.0 / diagonal[i] + 1.0 / diagonal[j]) * (of_sums - value);
            if quality > best * (1.0 + ROUNDED) {
                (best, partner) = (quality, j);
            }
        }
        (pairs.of_row[i], pairs.of_row[partner]) = (pairs.n as u32, pairs.n as u32);
        pairs.n += 1;
    }
    pairs
}

/// Returns the matrix with a one for the aggregate of each row that has one.
fn prolongator(pairs: &Pairs) -> Rows<f64> {
    let columns: Vec<u32> = pairs.of_row.iter().copied().filter(|&aggregate| aggregate != NONE).collect();
    let mut offsets = vec![0];
    offsets.extend(pairs.of_row.iter().scan(0, |end, &aggregate| {
        *end += usize::from(aggregate != NONE);
        Some(*end)
    }));
    Rows { n_cols: pairs.n, offsets, values: vec![1.0; columns.len()], columns }
}
