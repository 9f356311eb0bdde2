//! A matrix beside its transpose.

use crate::setup::rows::{Pieces, Row, RowAccess, Rows, sort_row};

/// A matrix and its transpose on their common pattern, columns of its rows ascending.
pub(super) struct Couplings {
    pub a: Rows<f64>,
    /// The value of $a_{ji}$ in the place of $a_{ij}$.
    pub mirror: Vec<f64>,
}

impl Couplings {
    /// Adds zeros to a matrix of ascending columns where only its transpose has entries.
    pub fn new(a: Rows<f64>) -> Self {
        let t = a.transpose();
        if t.offsets == a.offsets && t.columns == a.columns {
            return Self { a, mirror: t.values };
        }
        let [own, mirror] = [(&a, &t), (&t, &a)].map(|(values_of, pattern_of)| padded(values_of, pattern_of));
        Self { a: own, mirror: mirror.values }
    }

    /// Returns the column j, $a_{ij}$ and $a_{ji}$ of each entry of row i.
    pub fn row(&self, i: usize) -> impl Iterator<Item = (usize, f64, f64)> {
        let range = self.a.offsets[i]..self.a.offsets[i + 1];
        let columns = self.a.columns[range.clone()].iter().map(|&column| column as usize);
        let values = self.a.values[range.clone()].iter().zip(&self.mirror[range]);
        columns.zip(values).map(|(column, (&own, &mirror))| (column, own, mirror))
    }

    /// Returns $(A + A^\mathsf{T})/2$.
    pub fn symmetric_part(&self) -> Rows<f64> {
        let values = self.a.values.iter().zip(&self.mirror).map(|(own, mirror)| 0.5 * (own + mirror));
        Rows { values: values.collect(), ..self.a.clone() }
    }
}

/// Returns `a` with zeros where only `other` has entries.
fn padded(a: &Rows<f64>, other: &Rows<f64>) -> Rows<f64> {
    let scratch = || (Row::new(a.n_cols), Vec::new());
    let pieces = Pieces::build([a.n_rows(), a.n_cols], scratch, |(sums, pairs), row, out| {
        let ((own, values), (more, others)) = (a.row(row), other.row(row));
        sums.start(own.len() + more.len());
        sums.add(own, values, 1.0);
        sums.add(more, others, 0.0);
        let (columns, values) = sums.entries();
        sort_row(columns, values, pairs);
        out.extend(columns, values);
    });
    pieces.join()
}
