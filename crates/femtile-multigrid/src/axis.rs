//! Matrices of one axis: of a few cells beside each other, and of all.

use femtile_device::Scalar;
use femtile_element::quadrature::gauss_legendre;
use femtile_element::tensor::{Lagrange, Table};
use femtile_tensor::{Factor, Parity};

use crate::eigen::generalized;

/// Mass and stiffness on the nodes of neighbouring cells, the ends included: integrals of products of shape functions, and
/// of their slopes. Of no cells: those of an axis that there is not.
pub(crate) fn matrices(degree: usize, widths: &[f64]) -> [Table; 2] {
    if widths.is_empty() {
        return [1.0, 0.0].map(|entry| Table { n_points: 1, n_shapes: 1, entries: vec![entry] });
    }
    let lagrange = Lagrange::gauss_lobatto(degree);
    let (points, weights) = gauss_legendre(degree + 1);
    let cell = [lagrange.values(&points), lagrange.slopes(&points)].map(|table| table.gram(&weights));
    let n = degree * widths.len() + 1;
    [0, 1].map(|which| {
        let mut entries = vec![0.0; n * n];
        for (c, width) in widths.iter().enumerate() {
            let scale = if which == 0 { *width } else { 1.0 / width };
            for (i, row) in cell[which].entries.chunks_exact(degree + 1).enumerate() {
                let first = (degree * c + i) * n + degree * c;
                for (entry, value) in entries[first..].iter_mut().zip(row) {
                    *entry += scale * value;
                }
            }
        }
        Table { n_points: n, n_shapes: n, entries }
    })
}

/// Mass and stiffness of a few cells.
#[derive(Debug, Clone)]
pub(crate) struct Line<T> {
    /// Of the cells; none where there is no such axis.
    pub widths: Vec<f64>,
    pub mass: Factor<T>,
    pub stiffness: Factor<T>,
}

impl<T: Scalar> Line<T> {
    pub fn new(degree: usize, widths: &[f64]) -> Self {
        let [mass, stiffness] = matrices(degree, widths).each_ref().map(Factor::new);
        Self { widths: widths.to_vec(), mass, stiffness }
    }
}

/// What solves on the nodes between the ends of a few cells, in the basis S of generalized eigenvectors of the stiffness K
/// and the mass M of these nodes: $S^\mathsf{T} M S = I$, $S^\mathsf{T} K S = \Lambda$.
///
/// P and Q are $S^\mathsf{T}$ times the rows of M and K of these nodes, in which the ends have columns; of no cells M is one
/// and K zero.
#[derive(Debug, Clone)]
pub(crate) struct PatchLine<T> {
    /// $\Lambda$.
    pub values: Vec<f64>,
    /// $S^\mathsf{T}$.
    pub forward: Factor<T>,
    /// S.
    pub back: Factor<T>,
    /// The row of S of the node between two cells.
    pub back_middle: Factor<T>,
    /// P without the columns of the ends: the inverse of S.
    pub inner: Factor<T>,
    /// Rows of P and Q in turn.
    pub both: Factor<T>,
    /// Rows of (P 0) and (Q P) in turn: what follows `both` along another axis.
    pub sums: Factor<T>,
    /// Columns of the ends: those of Q, then those of P.
    pub ends: Factor<T>,
}

impl<T: Scalar> PatchLine<T> {
    pub fn new(degree: usize, widths: &[f64]) -> Self {
        let tables = matrices(degree, widths);
        let m = tables[0].n_shapes;
        let (values, back) = modes(&tables);
        let n = values.len();
        let [p, q] = tables.each_ref().map(|table| transformed(&back, table));
        let zeros = vec![0.0; m];
        let row = |table: &Table, i: usize| table.row(i).to_vec();
        let of_rows = |rows: Vec<Vec<f64>>| {
            let (n_points, n_shapes) = (rows.len(), rows[0].len());
            Factor::with_parity(&Table { n_points, n_shapes, entries: rows.concat() }, Parity::None)
        };
        let is_inner = |j: usize| n == m || (j > 0 && j + 1 < m);
        let chosen = |row: &[f64]| (0..m).filter(|j| is_inner(*j)).map(|j| row[j]).collect::<Vec<_>>();
        Self {
            forward: Factor::new(&back.transpose()),
            back: Factor::new(&back),
            back_middle: of_rows(vec![row(&back, n / 2)]),
            inner: of_rows((0..n).map(|i| chosen(p.row(i))).collect()),
            both: of_rows((0..n).flat_map(|i| [row(&p, i), row(&q, i)]).collect()),
            sums: of_rows(
                (0..n).flat_map(|i| [[p.row(i), &zeros].concat(), [q.row(i), p.row(i)].concat()]).collect(),
            ),
            ends: of_rows(
                (0..n).map(|i| [&q, &p].map(|t| [t.row(i)[0], t.row(i)[m - 1]]).concat()).collect(),
            ),
            values,
        }
    }
}

/// $\Lambda$ and S of the nodes between the ends of an axis with this mass and stiffness, $S^\mathsf{T} M S = I$ and
/// $S^\mathsf{T} K S = \Lambda$; of no cells, 0 and 1.
pub(crate) fn modes(tables: &[Table; 2]) -> (Vec<f64>, Table) {
    let m = tables[0].n_shapes;
    let (values, entries) = if m == 1 {
        (vec![0.0], vec![1.0])
    } else {
        let [mass, stiffness] = tables.each_ref().map(inner);
        generalized(m - 2, &stiffness, &mass)
    };
    let n = values.len();
    (values, Table { n_points: n, n_shapes: n, entries })
}

/// $S^\mathsf{T}$ times the rows of a matrix that S has.
fn transformed(s: &Table, table: &Table) -> Table {
    let (n, m) = (s.n_shapes, table.n_shapes);
    let first = (m - n) / 2;
    let entry = |at: usize| (0..n).map(|k| s.row(k)[at / m] * table.row(first + k)[at % m]).sum();
    Table { n_points: n, n_shapes: m, entries: (0..n * m).map(entry).collect() }
}

/// A matrix without its first and last row and column.
fn inner(table: &Table) -> Vec<f64> {
    let n = table.n_shapes;
    (1..n - 1).flat_map(|row| table.row(row)[1..n - 1].to_vec()).collect()
}

/// What carries functions of a cell over to its parts, one or two halves, and back.
#[derive(Debug, Clone)]
pub(crate) struct TransferLine<T> {
    /// Values at the nodes of the parts but the last: k rows for each and k + 1 columns.
    pub up: Factor<T>,
    /// Its transpose.
    pub down: Factor<T>,
    /// $I^\mathsf{T} M$ and $I^\mathsf{T} K$ with all nodes of the parts.
    pub down_energy: Line<T>,
}

impl<T: Scalar> TransferLine<T> {
    pub fn new(degree: usize, widths: &[f64], n_parts: usize) -> Self {
        let of_cell = |width: &f64| vec![width / n_parts as f64; n_parts];
        let parts: Vec<f64> = widths.iter().flat_map(of_cell).collect();
        let whole = if widths.is_empty() { one() } else { embedding(degree, n_parts) };
        let n = whole.n_shapes;
        let own = if widths.is_empty() { one() } else { rows(&whole, n_parts * degree) };
        let down = whole.transpose();
        let [mass, stiffness] = matrices(degree, &parts).map(|table| {
            let m = table.n_shapes;
            let entry = |at: usize| (0..m).map(|k| down.row(at / m)[k] * table.row(k)[at % m]).sum();
            Factor::new(&Table { n_points: n, n_shapes: m, entries: (0..n * m).map(entry).collect() })
        });
        Self {
            up: Factor::new(&own),
            down: Factor::new(&own.transpose()),
            down_energy: Line { widths: widths.to_vec(), mass, stiffness },
        }
    }
}

fn one() -> Table {
    Table { n_points: 1, n_shapes: 1, entries: vec![1.0] }
}

/// The first rows of a table.
fn rows(table: &Table, n: usize) -> Table {
    Table { n_points: n, n_shapes: table.n_shapes, entries: table.entries[..n * table.n_shapes].to_vec() }
}

/// Values at the nodes of the parts of a cell.
pub(crate) fn embedding(degree: usize, n_parts: usize) -> Table {
    let lagrange = Lagrange::gauss_lobatto(degree);
    let nodes = lagrange.nodes();
    let at = |i: usize| (nodes[i % degree] + (i / degree) as f64) / n_parts as f64;
    lagrange.values(&(0..n_parts * degree).map(at).chain([1.0]).collect::<Vec<_>>())
}

/// A matrix whose rows have their entries side by side.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Banded<T> {
    /// The first column of each row, and its entries.
    pub rows: Vec<(usize, Vec<T>)>,
    pub n_cols: usize,
}

impl<T: Scalar> Banded<T> {
    /// Mass and stiffness of an axis.
    pub fn of_axis(degree: usize, widths: &[f64]) -> [Self; 2] {
        matrices(degree, widths).map(|table| {
            let n = table.n_shapes;
            let row = |i: usize| {
                // The cells that have the node: two where it lies between them.
                let cell = i / degree;
                let first =
                    if i.is_multiple_of(degree) { degree * cell.saturating_sub(1) } else { degree * cell };
                let last = (degree * (cell + 1)).min(n - 1);
                (first, table.row(i)[first..=last].iter().map(|&entry| T::from_f64(entry)).collect())
            };
            Self { rows: (0..n).map(row).collect(), n_cols: n }
        })
    }

    /// The identity of one row.
    pub fn one() -> Self {
        Self { rows: vec![(0, vec![T::ONE])], n_cols: 1 }
    }
}
