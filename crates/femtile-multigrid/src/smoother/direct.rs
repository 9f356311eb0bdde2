use femtile_device::Cpu;
use femtile_sum_factorization::SumFactorization;

use super::cholesky::Cholesky;
use crate::MultigridError;
use crate::grid::{BoxGrid, all};
use crate::mapped::{CellGeometry, for_matrices};

/// Most bytes of a factor.
const MOST_BYTES: usize = 64 << 20;

/// The direct solver of the coarsest grid of mapped cells: band Cholesky, f64, one thread.
///
/// # Cost
/// With n unknowns and a bandwidth $b = k\, n_x n_y$: $\mathcal{O}(n b^2)$ to factor, 2 n b multiplications per solve, n
/// b numbers.
#[derive(Debug, Clone)]
pub struct Direct {
    /// The node of each unknown.
    nodes: Vec<u32>,
    factor: Cholesky<f64>,
}

/// Returns the entries per row of the factor.
///
/// # Errors
/// [`MultigridError::Direct`] for a factor of too many bytes.
pub(crate) fn band_width(grid: &BoxGrid) -> Result<usize, MultigridError> {
    let [n, m, _] = grid.unknowns();
    let slowest = if grid.dimension() == 3 { n * m } else { n };
    let (k, unknowns) = (grid.degree(), grid.n_unknowns());
    let width = k * (slowest + if grid.dimension() == 3 { n } else { 0 } + 1) + 1;
    let width = width.min(unknowns.max(1));
    let bytes = unknowns * width * size_of::<f64>();
    match bytes > MOST_BYTES {
        true => Err(MultigridError::Direct { unknowns, bytes, most: MOST_BYTES }),
        false => Ok(width),
    }
}

impl Direct {
    /// # Errors
    /// [`MultigridError::Direct`] for a factor of too many bytes.
    pub(crate) fn new(cpu: &Cpu, grid: &BoxGrid, geometry: &CellGeometry) -> Result<Self, MultigridError> {
        let (width, nodes) = (band_width(grid)?, unknowns(grid));
        let mut rows = vec![0.0; nodes.len() * width];
        for_entries(cpu, grid, geometry, &nodes, |row, column, entry| {
            rows[row * width + width - 1 + column - row] += entry;
        });
        Ok(Self { nodes, factor: Cholesky::new(width, rows) })
    }

    /// Solves A x = b and overwrites x.
    pub fn solve<T: SumFactorization>(&self, x: &mut [T], b: &[T]) {
        let mut values: Vec<f64> = self.nodes.iter().map(|&node| b[node as usize].to_f64()).collect();
        self.factor.solve(&mut values);
        for (&node, value) in self.nodes.iter().zip(values) {
            x[node as usize] = T::from_f64(value);
        }
    }
}

/// Returns the node of each unknown.
pub(crate) fn unknowns(grid: &BoxGrid) -> Vec<u32> {
    let nodes = all(grid.nodes()).enumerate();
    nodes.filter(|(_, at)| !grid.is_given(*at)).map(|(node, _)| node as u32).collect()
}

/// Calls `add` with row, column and value of the entries of all cell matrices up to the diagonal, for unknowns at these
/// nodes.
pub(crate) fn for_entries(
    cpu: &Cpu,
    grid: &BoxGrid,
    geometry: &CellGeometry,
    nodes: &[u32],
    mut add: impl FnMut(usize, usize, f64),
) {
    let mut unknowns = vec![None; grid.n_nodes()];
    nodes.iter().enumerate().for_each(|(unknown, &node)| unknowns[node as usize] = Some(unknown));
    let of_cell = of_cell(grid);
    for_matrices(cpu, grid, geometry, |first, matrix| {
        for (row, entries) in of_cell.iter().zip(matrix.chunks_exact(of_cell.len())) {
            let Some(row) = unknowns[first + row] else { continue };
            for (column, entry) in of_cell.iter().zip(entries) {
                if let Some(column) = unknowns[first + column].filter(|column| *column <= row) {
                    add(row, column, *entry);
                }
            }
        }
    });
}

/// Returns the nodes of a cell relative to its first one.
pub(crate) fn of_cell(grid: &BoxGrid) -> Vec<usize> {
    let along = [0, 1, 2].map(|axis| if grid.widths(axis).is_empty() { 1 } else { grid.degree() + 1 });
    let strides = grid.strides();
    all(along).map(|at| (0..3).map(|axis| strides[axis] * at[axis]).sum()).collect()
}
