//! Matrices of one axis: of a few cells beside each other, and of all.

use femtile_device::Scalar;
use femtile_element::quadrature::gauss_legendre;
use femtile_element::tensor::{Lagrange, Table};
use femtile_tensor::Factor;

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
        Self::of(widths, &matrices(degree, widths))
    }

    fn of(widths: &[f64], tables: &[Table; 2]) -> Self {
        let [mass, stiffness] = tables.each_ref().map(Factor::new);
        Self { widths: widths.to_vec(), mass, stiffness }
    }
}

/// The same with what solves on the nodes between the ends, which are held at zero.
#[derive(Debug, Clone)]
pub(crate) struct PatchLine<T> {
    pub line: Line<T>,
    /// $S^\mathsf{T}$ and S.
    pub vectors: [Factor<T>; 2],
    pub values: Vec<f64>,
}

impl<T: Scalar> PatchLine<T> {
    pub fn new(degree: usize, widths: &[f64]) -> Self {
        let tables = matrices(degree, widths);
        let (values, s) = if widths.is_empty() {
            (vec![0.0], vec![1.0])
        } else {
            let [mass, stiffness] = tables.each_ref().map(inner);
            generalized(tables[0].n_points - 2, &stiffness, &mass)
        };
        let s = Table { n_points: values.len(), n_shapes: values.len(), entries: s };
        let vectors = [Factor::new(&s.transpose()), Factor::new(&s)];
        Self { line: Line::of(widths, &tables), vectors, values }
    }
}

/// A matrix without its first and last row and column.
fn inner(table: &Table) -> Vec<f64> {
    let n = table.n_shapes;
    (1..n - 1).flat_map(|row| table.row(row)[1..n - 1].to_vec()).collect()
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

    /// Values at the nodes of halved cells of a function given at the nodes of so many cells.
    pub fn embedding(degree: usize, n_cells: usize) -> Self {
        let lagrange = Lagrange::gauss_lobatto(degree);
        let nodes = lagrange.nodes();
        let halves =
            (0..2 * degree).map(|i| 0.5 * (nodes[i % degree] + (i / degree) as f64)).collect::<Vec<_>>();
        let table = lagrange.values(&halves);
        let mut rows = Vec::with_capacity(2 * degree * n_cells + 1);
        for cell in 0..n_cells {
            let row = |at: usize| (degree * cell, table.row(at).iter().map(|&s| T::from_f64(s)).collect());
            rows.extend((0..2 * degree).map(row));
        }
        rows.push((degree * n_cells, vec![T::ONE]));
        Self { rows, n_cols: degree * n_cells + 1 }
    }

    /// The identity of one row.
    pub fn one() -> Self {
        Self { rows: vec![(0, vec![T::ONE])], n_cols: 1 }
    }

    /// Rows and columns exchanged.
    pub fn transpose(&self) -> Self {
        let mut rows = vec![(usize::MAX, Vec::new()); self.n_cols];
        for (i, (first, entries)) in self.rows.iter().enumerate() {
            for (column, entry) in rows[*first..].iter_mut().zip(entries) {
                column.0 = column.0.min(i);
                column.1.push(*entry);
            }
        }
        Self { rows, n_cols: self.rows.len() }
    }
}
