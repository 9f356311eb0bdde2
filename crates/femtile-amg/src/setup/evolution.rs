//! Strength of connection by evolution, for rows whose positive entries hide the direction of strong coupling.

use femtile_device::{Scalar, parallel};

use super::graph::{Aggregates, NONE};
use super::rows::{PIECE, Pieces, Row, RowAccess, Rows};

/// A row is doubtful if its positive off-diagonal entries sum to more than this share of the diagonal. On
/// coarser levels, which inherit the direction in smaller entries, a third of this share suffices, but only
/// for rows that come from doubtful ones.
pub(crate) const DOUBTFUL: f64 = 0.3;
pub(crate) const COARSER: f64 = 1.0 / 3.0;
/// Neighbours count whose measure is at most this multiple of the smallest one of the row.
pub(crate) const DROP: f64 = 3.0;
/// Values below this, relative to the node itself, are no connection.
pub(crate) const NOTHING: f64 = 1e-4;

/// The evolution measure of the entries of doubtful rows.
#[derive(Debug)]
pub(crate) struct Evolution {
    pub is_doubtful: Vec<bool>,
    /// For each entry whether it counts by the measure of its row; false in rows that are not doubtful.
    is_near: Vec<bool>,
}

impl Evolution {
    /// Measures the connections of doubtful rows. A unit vector at node i is relaxed twice,
    /// $z = (I - \omega D^{-1} A)^2 e_i$. Node j is near if $z_i b_j / b_i$ is close to $z_j$, with the
    /// near-nullspace b: the measure is $|1 - z_i b_j / (b_i z_j)|$. None if no row is doubtful. Only entries
    /// that are `large` define the smallest measure of a row: beside a coefficient jump, nodes on the other
    /// side follow closely and are no measure. These rows use the size of their entries instead: rows named
    /// by `is_exempt`, rows in which b is zero, and on coarser levels rows not named by [`inherited`].
    /// Galerkin products beside a jump have positive entries that hide no direction.
    ///
    /// # Cost
    /// A pass over the non-zeros; if rows are doubtful, two more passes and the rows of $A^2$ that belong to
    /// them.
    /// # Source
    /// `[olson2010]`, section 3, with one vector and two steps. Differs: only rows with large positive
    /// entries are measured, so that other matrices keep their groups; $\omega$ is the reciprocal of a bound
    /// of the spectrum, not of an estimate.
    pub fn new<T: Scalar>(
        a: &Rows<T>,
        diagonal: &[T],
        b: &[f64],
        large: &[bool],
        inherited: Option<&[bool]>,
        is_exempt: impl Fn(usize) -> bool + Sync,
    ) -> Option<Self> {
        let is_doubtful = doubtful_rows(a, diagonal, b, inherited, is_exempt);
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

    /// Clears the flags of entries with a doubtful row or column that are near by neither of them.
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

/// Returns whether each row is doubtful; on coarser levels, only `inherited` rows are.
pub(crate) fn doubtful_rows<T: Scalar>(
    a: &Rows<T>,
    diagonal: &[T],
    b: &[f64],
    inherited: Option<&[bool]>,
    is_exempt: impl Fn(usize) -> bool + Sync,
) -> Vec<bool> {
    let share = T::from_f64(if inherited.is_none() { DOUBTFUL } else { COARSER * DOUBTFUL });
    let may_be = |row: usize| inherited.is_none_or(|inherited| inherited.get(row) == Some(&true));
    parallel::map(a.n_rows(), PIECE, |row| {
        may_be(row) && positive_sum(a, row, b) > share * diagonal[row] && !is_exempt(row)
    })
}

/// Returns whether more than half of the nodes of each aggregate are doubtful or have inherited it; empty if none are.
pub(crate) fn inherited(of_nodes: &[bool], aggregates: &Aggregates) -> Vec<bool> {
    if !of_nodes.contains(&true) {
        return Vec::new();
    }
    let mut balance = vec![0_i64; aggregates.n];
    for (&part, &is_one) in aggregates.of_node.iter().zip(of_nodes) {
        if part != NONE {
            balance[part as usize] += if is_one { 1 } else { -1 };
        }
    }
    balance.into_iter().map(|balance| balance > 0).collect()
}

/// Returns the sum of positive off-diagonal entries of a row, over columns with a non-zero near-nullspace.
fn positive_sum<T: Scalar>(a: &Rows<T>, row: usize, b: &[f64]) -> T {
    let (columns, values) = a.row(row);
    let is_counted = |column: usize| column != row && b[column] != 0.0;
    let positive = columns.iter().zip(values).filter(|(_, value)| **value > T::ZERO);
    let sum: T = positive.filter(|(column, _)| is_counted(**column as usize)).map(|(_, value)| *value).sum();
    if b[row] == 0.0 { T::ZERO } else { sum }
}

/// Returns the largest absolute row sum of $D^{-1} A$, an upper bound of its eigenvalues.
fn largest_row_sum<T: Scalar>(a: &Rows<T>, diagonal: &[T]) -> f64 {
    let of_row = |row: usize| {
        let sum: f64 = a.row(row).1.iter().map(|value| value.to_f64().abs()).sum();
        sum / diagonal[row].to_f64()
    };
    parallel::map(a.n_rows(), PIECE, of_row).into_iter().fold(1.0, f64::max)
}

/// Computes the measures of the entries of a row, infinite if there is no connection.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring on which every row has two neighbours beside it with entries −1 and two further ones with 0.4.
    fn ring(n: usize) -> Rows<f64> {
        let mut rows = Rows { n_cols: n, offsets: vec![0], columns: vec![], values: vec![] };
        for row in 0..n {
            for (step, value) in [(0, 1.3), (1, -1.0), (2, 0.4), (n - 2, 0.4), (n - 1, -1.0)] {
                rows.columns.push(((row + step) % n) as u32);
                rows.values.push(value);
            }
            rows.offsets.push(rows.columns.len());
        }
        rows
    }

    #[test]
    fn rows_of_coarser_levels_are_doubtful_where_they_come_from_doubtful_ones_alone() {
        let (a, ones) = (ring(12), [1.0; 12]);
        let mut from = [false; 12];
        from[3..7].fill(true);
        let doubtful =
            |inherited: Option<&[bool]>| doubtful_rows(&a, &[1.3; 12], &ones, inherited, |_| false);
        assert_eq!(doubtful(None), [true; 12]);
        assert_eq!(doubtful(Some(&from)), from);
        assert_eq!(doubtful(Some(&[])), [false; 12]);
    }

    #[test]
    fn an_aggregate_inherits_from_more_than_half_of_its_nodes() {
        let aggregates = Aggregates { n: 3, of_node: vec![0, 0, 1, 1, 1, NONE, 2] };
        let of_nodes = [true, false, true, true, false, true, false];
        assert_eq!(inherited(&of_nodes, &aggregates), [false, true, false]);
        assert_eq!(inherited(&[false; 7], &aggregates), [false; 0]);
    }
}
