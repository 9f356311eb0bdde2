use femtile_device::parallel;
use femtile_element::quadrature::gauss_legendre;
use femtile_element::tensor::{Lagrange, Table};
use femtile_sum_factorization::{Factor, contract_reference};

use super::{CellGeometry, CellMap};
use crate::grid::{BoxGrid, all, place};
use crate::smoother::of_cell;

/// Cells that a thread takes at least.
const CELLS: usize = 16;

/// Returns the diagonal of the operator on mapped cells, at all nodes:
///
/// $$ a_{ii} = \sum_K \sum_{ab} \sum_q w_q G_{ab}(x_q)\, \partial_a\varphi_i(x_q)\, \partial_b\varphi_i(x_q). $$
///
/// # Cost
/// Per cell 18 products with 1-D matrices of k + 1 rows in three dimensions, 6 in two, and the metric at each Gauss point.
pub(crate) fn diagonal_of(grid: &BoxGrid, geometry: &CellGeometry) -> Vec<f64> {
    let (d, n) = (grid.dimension(), grid.degree() + 1);
    let (points, weights) = gauss_legendre(n);
    let shapes = Lagrange::gauss_lobatto(grid.degree());
    let tables = [shapes.values(&points), shapes.slopes(&points)];
    // By the number of slopes among the two factors.
    let products = [[0, 0], [0, 1], [1, 1]].map(|[one, other]| {
        let entry = |at: usize| tables[one].row(at % n)[at / n] * tables[other].row(at % n)[at / n];
        Factor::<f64>::new(&Table { n_points: n, n_shapes: n, entries: (0..n * n).map(entry).collect() })
    });
    let of_axes = [n, n, if d == 3 { n } else { 1 }];
    let metric = |map: &CellMap, c: f64, at: [usize; 3]| {
        let point = [0, 1, 2].map(|axis| if axis < d { points[at[axis]] } else { 0.5 });
        let weight = c * at[..d].iter().map(|&at| weights[at]).product::<f64>();
        map.metric(point).map(|row| row.map(|entry| weight * entry))
    };
    let of_metric = |number: usize| {
        let cell = place(geometry.cells(), number);
        let (map, c) = (geometry.map(cell), geometry.coefficient(cell));
        let metrics: Vec<[[f64; 3]; 3]> = all(of_axes).map(|at| metric(&map, c, at)).collect();
        let mut sum = vec![0.0; metrics.len()];
        for (a, b) in (0..d).flat_map(|a| (a..d).map(move |b| (a, b))) {
            let share = if a == b { 1.0 } else { 2.0 };
            let mut values: Vec<f64> = metrics.iter().map(|metric| share * metric[a][b]).collect();
            for axis in 0..d {
                let mut next = vec![0.0; values.len()];
                let factor = &products[usize::from(axis == a) + usize::from(axis == b)];
                contract_reference(factor, (n.pow(axis as u32), 1), &values, &mut next);
                values = next;
            }
            sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
        }
        sum
    };
    let n_cells = geometry.cells().iter().product();
    let (strides, of_cell, mut diagonal) = (grid.strides(), of_cell(grid), vec![0.0; grid.n_nodes()]);
    for (number, entries) in parallel::map(n_cells, CELLS, of_metric).into_iter().enumerate() {
        let cell = place(geometry.cells(), number);
        let first = grid.degree() * (0..3).map(|axis| strides[axis] * cell[axis]).sum::<usize>();
        of_cell.iter().zip(entries).for_each(|(node, entry)| diagonal[first + node] += entry);
    }
    diagonal
}

#[cfg(test)]
mod tests {
    use femtile_device::Cpu;

    use super::*;
    use crate::mapped::for_matrices;

    #[test]
    fn diagonals_are_those_of_the_matrices_of_all_cells() {
        for (degree, n) in [(1, [3, 2, 2]), (3, [2, 1, 3]), (2, [3, 4, 0])] {
            let corners = all(n.map(|n| n + 1)).map(|at| {
                let [x, y, z] = at.map(|at| at as f64);
                [x + 0.1 * y * z + 0.2 * y, y + 0.1 * (2.0 * x).sin(), z - 0.1 * x * y]
            });
            let d = if n[2] == 0 { 2 } else { 3 };
            let coefficients = all(n.map(|n| n.max(1))).map(|[x, y, z]| 1.0 + (x + 2 * y + z) as f64);
            let grid = BoxGrid::mapped(degree, &n[..d], corners.collect(), coefficients.collect()).unwrap();
            let (geometry, of_cell) = (grid.geometry(), of_cell(&grid));
            let mut expected = vec![0.0; grid.n_nodes()];
            for_matrices(&Cpu::new(1).unwrap(), &grid, &geometry, |first, matrix| {
                for (i, node) in of_cell.iter().enumerate() {
                    expected[first + node] += matrix[i * of_cell.len() + i];
                }
            });
            for (found, expected) in diagonal_of(&grid, &geometry).iter().zip(expected) {
                assert!((found - expected).abs() < 1e-12 * expected, "{degree}: {found} {expected}");
            }
        }
    }
}
