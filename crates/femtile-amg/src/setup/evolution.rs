//! Strength of connection by evolution, for rows whose positive entries hide the direction of strong coupling.

use femtile_device::Scalar;
use rayon::prelude::*;

use super::rows::{PIECE, Pieces, Row, RowAccess, Rows};

/// A row is doubtful where its positive entries beside the diagonal add up to more than this share of the diagonal; on
/// coarser levels, which inherit direction in smaller entries, to more than a third of it.
pub(crate) const DOUBTFUL: f64 = 0.3;
const COARSER: f64 = 1.0 / 3.0;
/// Neighbours count whose measure is at most this multiple of the smallest one of the row.
const DROP: f64 = 3.0;
/// What has evolved less than this, relative to the node itself, is no connection.
const NOTHING: f64 = 1e-4;

/// What evolution says of the entries of doubtful rows.
#[derive(Debug)]
pub(crate) struct Evolution {
    is_doubtful: Vec<bool>,
    /// For each entry whether it counts by the measure of its row; false in rows that are not doubtful.
    is_near: Vec<bool>,
}

impl Evolution {
    /// Measures the connections of doubtful rows: a unit vector at node i is relaxed twice,
    /// $z = (I - \omega D^{-1} A)^2 e_i$, and node j is the nearer the less $z_i b_j / b_i$ differs from $z_j$, where b is
    /// the near-nullspace: the measure is $|1 - z_i b_j / (b_i z_j)|$. None where no row is doubtful. The smallest measure of
    /// a row is that of entries that are `large`: beside a jump of coefficients, nodes on the other side follow closely and
    /// are no measure. Rows that `is_exempt` names are taken by the size of their entries, and so are those in which b is
    /// zero.
    ///
    /// # Cost
    /// A pass over the non-zeros; where rows are doubtful, two more and the rows of $A^2$ that belong to them.
    /// # Source
    /// `[olson2010]`, section 3, with one vector and two steps. Differs: only where positive entries are large, so that
    /// other matrices keep their groups; $\omega$ is the reciprocal of a bound, not of an estimate, of the spectrum.
    pub fn new<T: Scalar>(
        a: &Rows<T>,
        diagonal: &[T],
        b: &[f64],
        large: &[bool],
        is_first: bool,
        is_exempt: impl Fn(usize) -> bool + Sync,
    ) -> Option<Self> {
        let share = T::from_f64(if is_first { DOUBTFUL } else { COARSER * DOUBTFUL });
        let is_doubtful: Vec<bool> = (0..a.n_rows())
            .into_par_iter()
            .with_min_len(PIECE)
            .map(|row| positive_sum(a, row, b) > share * diagonal[row] && !is_exempt(row))
            .collect();
        if !is_doubtful.contains(&true) {
            return None;
        }
        let omega = T::from_f64(1.0 / largest_row_sum(a, diagonal));
        let n = a.n_rows();
        let scratch = || (Row::new(n), Vec::new());
        let is_near = Pieces::<T>::build([n, n], scratch, |(sums, measures), row, out| {
            measures.clear();
            if is_doubtful[row] {
                measure(a, diagonal, b, omega, row, sums, measures);
            }
            let of_large = measures.iter().zip(&large[a.offsets[row]..]).filter(|(_, large)| **large);
            let nearest = of_large.map(|(measure, _)| *measure).fold(f64::INFINITY, f64::min);
            for (i, &column) in a.row(row).0.iter().enumerate() {
                let is_near = measures.get(i).is_some_and(|m| m.is_finite() && *m <= DROP * nearest);
                out.push(column, if is_near { T::ONE } else { T::ZERO });
            }
        });
        let is_near = is_near.join().values.into_iter().map(|near| near > T::ZERO).collect();
        Some(Self { is_doubtful, is_near })
    }

    /// Takes flags away from entries with a doubtful row or column that neither of them finds near.
    pub fn restrict<T: Scalar>(&self, a: &Rows<T>, flags: &mut [bool]) {
        for row in 0..a.n_rows() {
            let range = a.offsets[row]..a.offsets[row + 1];
            let entries = flags[range.clone()].iter_mut().zip(&a.columns[range.clone()]);
            for ((flag, &column), &is_near) in entries.zip(&self.is_near[range]) {
                let column = column as usize;
                if *flag && column != row && (self.is_doubtful[row] || self.is_doubtful[column]) {
                    *flag = is_near || self.is_near_from(a, column, row as u32);
                }
            }
        }
    }

    fn is_near_from<T: Scalar>(&self, a: &Rows<T>, row: usize, column: u32) -> bool {
        let place = || a.row(row).0.iter().position(|&other| other == column);
        self.is_doubtful[row] && place().is_some_and(|at| self.is_near[a.offsets[row] + at])
    }
}

/// The positive entries of a row beside the diagonal together, where the near-nullspace is not zero.
fn positive_sum<T: Scalar>(a: &Rows<T>, row: usize, b: &[f64]) -> T {
    let (columns, values) = a.row(row);
    let is_counted = |column: usize| column != row && b[column] != 0.0;
    let positive = columns.iter().zip(values).filter(|(_, value)| **value > T::ZERO);
    let sum: T = positive.filter(|(column, _)| is_counted(**column as usize)).map(|(_, value)| *value).sum();
    if b[row] == 0.0 { T::ZERO } else { sum }
}

/// The largest absolute row sum of $D^{-1} A$, which no eigenvalue exceeds.
fn largest_row_sum<T: Scalar>(a: &Rows<T>, diagonal: &[T]) -> f64 {
    let of_row = |row: usize| {
        let sum: f64 = a.row(row).1.iter().map(|value| value.to_f64().abs()).sum();
        sum / diagonal[row].to_f64()
    };
    (0..a.n_rows()).into_par_iter().with_min_len(PIECE).map(of_row).reduce(|| 1.0, f64::max)
}

/// The measures of the entries of a row, infinite where there is no connection.
fn measure<T: Scalar>(
    a: &Rows<T>,
    diagonal: &[T],
    b: &[f64],
    omega: T,
    row: usize,
    sums: &mut Row<T>,
    measures: &mut Vec<f64>,
) {
    let (columns, values) = a.row(row);
    sums.start(columns.iter().map(|&column| a.row(column as usize).0.len()).sum());
    for (&column, &value) in columns.iter().zip(values) {
        let (next, entries) = a.row(column as usize);
        sums.add(next, entries, value / diagonal[column as usize]);
    }
    // e_i − 2ω D⁻¹ A e_i + ω² D⁻¹ A D⁻¹ A e_i, where A is symmetric.
    let evolved = |column: u32, value: T| {
        let steps = omega * omega * sums.get(column) - T::from_f64(2.0) * omega * value;
        let start = if column as usize == row { 1.0 } else { 0.0 };
        start + (steps / diagonal[column as usize]).to_f64()
    };
    let at = columns.iter().position(|&column| column as usize == row);
    let own = at.map_or(0.0, |at| evolved(columns[at], values[at])) / b[row];
    measures.extend(columns.iter().zip(values).map(|(&column, &value)| {
        let ratio = evolved(column, value) / (own * b[column as usize]);
        let is_connected = column as usize != row && value != T::ZERO && ratio > NOTHING;
        if is_connected { (1.0 - 1.0 / ratio).abs() } else { f64::INFINITY }
    }));
}
