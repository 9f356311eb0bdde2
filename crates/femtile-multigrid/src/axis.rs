//! One-dimensional matrices: mass and stiffness of a few cells or of a whole axis, and their generalized eigenvectors.

use std::ops::Range;

use femtile_device::Scalar;
use femtile_element::quadrature::gauss_legendre;
use femtile_element::tensor::{Lagrange, Table};
use femtile_sum_factorization::{Factor, Parity};

use crate::eigen::generalized;

/// Returns mass and stiffness on all nodes of consecutive cells: integrals of products of shape functions and of their
/// derivatives. For an absent axis (no cells) they are 1 and 0.
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

/// Mass and stiffness of consecutive cells.
#[derive(Debug, Clone)]
pub(crate) struct Line<T> {
    /// Widths of the cells; empty for an absent axis.
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

/// Matrices of the fast diagonalization method for the unknowns of a few cells: all nodes without closed ends. S holds
/// the generalized eigenvectors of the stiffness K and the mass M of these nodes: $S^\mathsf{T} M S = I$,
/// $S^\mathsf{T} K S = \Lambda$.
///
/// P and Q are $S^\mathsf{T}$ times the rows of M and K of these nodes, with columns for closed ends as well. For an
/// absent axis M is 1 and K is 0.
#[derive(Debug, Clone)]
pub(crate) struct PatchLine<T> {
    /// $\Lambda$.
    pub values: Vec<f64>,
    /// $S^\mathsf{T}$.
    pub forward: Factor<T>,
    /// S.
    pub back: Factor<T>,
    /// The row of S of the node between two cells, or at the open end of one cell.
    pub back_middle: Factor<T>,
    /// P without the columns of closed ends: the inverse of S.
    pub inner: Factor<T>,
    /// Rows of P and Q, alternating.
    pub both: Factor<T>,
    /// Rows of (P 0) and (Q P), alternating: applied after `both` along another axis.
    pub sums: Factor<T>,
    /// The columns of closed ends: first those of Q, then those of P.
    pub ends: Factor<T>,
}

impl<T: Scalar> PatchLine<T> {
    pub fn new(degree: usize, widths: &[f64], open: [bool; 2]) -> Self {
        let tables = matrices(degree, widths);
        let m = tables[0].n_shapes;
        let own = unknowns(m, open);
        let (values, back) = modes(&tables, open);
        let n = values.len();
        let [p, q] = tables.each_ref().map(|table| transformed(&back, table, own.start));
        let zeros = vec![0.0; m];
        let row = |table: &Table, i: usize| table.row(i).to_vec();
        let of_rows = |n_shapes: usize, rows: Vec<Vec<f64>>| {
            Factor::with_parity(
                &Table { n_points: rows.len(), n_shapes, entries: rows.concat() },
                Parity::None,
            )
        };
        let inner = |row: &[f64]| row[own.clone()].to_vec();
        let ends = |row: &[f64]| [&row[..own.start], &row[own.end..]].concat();
        let middle = match (widths.len(), open) {
            (1, [true, false]) => 0,
            (1, [false, true]) => n - 1,
            _ => n / 2,
        };
        Self {
            forward: Factor::new(&back.transpose()),
            back: Factor::new(&back),
            back_middle: of_rows(n, vec![row(&back, middle)]),
            inner: of_rows(n, (0..n).map(|i| inner(p.row(i))).collect()),
            both: of_rows(m, (0..n).flat_map(|i| [row(&p, i), row(&q, i)]).collect()),
            sums: of_rows(
                2 * m,
                (0..n).flat_map(|i| [[p.row(i), &zeros].concat(), [q.row(i), p.row(i)].concat()]).collect(),
            ),
            ends: of_rows(
                2 * (m - n),
                (0..n).map(|i| [&q, &p].map(|table| ends(table.row(i))).concat()).collect(),
            ),
            values,
        }
    }
}

/// Returns the range of nodes of an axis that have unknowns: all but closed ends; the single node of an absent axis.
pub(crate) fn unknowns(n_nodes: usize, [low, high]: [bool; 2]) -> Range<usize> {
    if n_nodes == 1 { 0..1 } else { usize::from(!low)..n_nodes - usize::from(!high) }
}

/// Returns $\Lambda$ and S of the unknowns of an axis, $S^\mathsf{T} M S = I$ and $S^\mathsf{T} K S = \Lambda$; 0 and 1
/// for an absent axis.
pub(crate) fn modes(tables: &[Table; 2], open: [bool; 2]) -> (Vec<f64>, Table) {
    let m = tables[0].n_shapes;
    let own = unknowns(m, open);
    let (values, entries) = if m == 1 {
        (vec![0.0], vec![1.0])
    } else {
        let inner = |table: &Table| -> Vec<f64> {
            own.clone().flat_map(|row| table.row(row)[own.clone()].to_vec()).collect()
        };
        generalized(own.len(), &inner(&tables[1]), &inner(&tables[0]))
    };
    (values, Table { n_points: own.len(), n_shapes: own.len(), entries })
}

/// Returns $S^\mathsf{T}$ times the rows of `table` from `first` on.
fn transformed(s: &Table, table: &Table, first: usize) -> Table {
    let (n, m) = (s.n_shapes, table.n_shapes);
    let entry = |at: usize| (0..n).map(|k| s.row(k)[at / m] * table.row(first + k)[at % m]).sum();
    Table { n_points: n, n_shapes: m, entries: (0..n * m).map(entry).collect() }
}

/// Returns the values of the shape functions of a cell at the nodes of its parts.
pub(crate) fn embedding(degree: usize, n_parts: usize) -> Table {
    let lagrange = Lagrange::gauss_lobatto(degree);
    let nodes = lagrange.nodes();
    let at = |i: usize| (nodes[i % degree] + (i / degree) as f64) / n_parts as f64;
    lagrange.values(&(0..n_parts * degree).map(at).chain([1.0]).collect::<Vec<_>>())
}
