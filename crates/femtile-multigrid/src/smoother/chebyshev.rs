use femtile_device::Cpu;
use femtile_linalg::precondition::polynomial::{Step, chebyshev};
use femtile_sum_factorization::{Factor, SumFactorization, contract_reference};

use crate::axis::{Line, matrices};
use crate::cpu::each;
use crate::grid::{BoxGrid, all};
use crate::mapped::{CellGeometry, for_matrices};
use crate::operator::BoxOperator;

use super::direct::of_cell;

/// Products per step: the degree of the polynomial.
pub(crate) const PRODUCTS: usize = 4;
/// Ratio of the largest eigenvalue to the smallest one that the step damps; coarser levels reduce errors of
/// smaller eigenvalues.
pub(crate) const RANGE: f64 = 15.0;
/// Steps of the power method, from an arbitrary vector and from the result of another cell.
const POWERS: [usize; 2] = [300, 30];
/// Safety factor on the estimate, which is a lower bound.
const RAISE: f64 = 1.05;

/// The Chebyshev polynomial smoother in $D^{-1} A$ on mapped cells, D the diagonal of A.
///
/// No eigenvalue of $D^{-1} A$ exceeds the largest one of a single cell, as A and D are sums over cells.
///
/// # Cost
/// Four products and as many passes over three vectors per step; workspace of two vectors.
/// # Source
/// `[adams2003]`.
#[derive(Debug, Clone)]
pub struct Chebyshev<T> {
    cpu: Cpu,
    operator: BoxOperator<T>,
    inverse_diagonal: Vec<T>,
    largest: f64,
}

impl<T: SumFactorization> Chebyshev<T> {
    pub(crate) fn new(cpu: &Cpu, grid: &BoxGrid, geometry: &CellGeometry) -> Self {
        let mut diagonal = vec![0.0; grid.n_nodes()];
        let of_cell = of_cell(grid);
        let (mut largest, mut x) = (0.0, Vec::new());
        for_matrices(cpu, grid, geometry, |first, matrix| {
            let own: Vec<f64> = matrix.iter().step_by(of_cell.len() + 1).copied().collect();
            of_cell.iter().zip(&own).for_each(|(node, entry)| diagonal[first + node] += entry);
            let product = |x: &[f64]| {
                let row = |row: &[f64]| row.iter().zip(x).map(|(a, x)| a * x).sum();
                matrix.chunks_exact(x.len()).map(row).collect::<Vec<f64>>()
            };
            largest = f64::max(largest, largest_of(&own, product, &mut x));
        });
        let inverse = |(entry, at): (f64, [usize; 3])| {
            if grid.is_given(at) { T::ZERO } else { T::from_f64(1.0 / entry) }
        };
        Self {
            cpu: cpu.clone(),
            operator: BoxOperator::new(cpu, grid),
            inverse_diagonal: diagonal.into_iter().zip(all(grid.nodes())).map(inverse).collect(),
            largest: RAISE * largest,
        }
    }

    /// Applies one polynomial; the step is symmetric.
    pub fn step(&self, x: &mut [T], b: &[T]) {
        let (mut r, mut direction) = (vec![T::ZERO; x.len()], vec![T::ZERO; x.len()]);
        for step in chebyshev::<T>(PRODUCTS, [self.largest / RANGE, self.largest]) {
            self.operator.residual(&mut r, b, x);
            self.advance([x, &mut direction], step, &r);
        }
    }

    /// $d = \beta d + \alpha D^{-1} r$, $x = x + d$.
    fn advance(&self, [x, direction]: [&mut [T]; 2], Step { alpha, beta, .. }: Step<T>, r: &[T]) {
        let inverse = &self.inverse_diagonal;
        each(&self.cpu, direction, |at, d| *d = beta * *d + alpha * inverse[at] * r[at]);
        each(&self.cpu, x, |at, x| *x += direction[at]);
    }
}

/// Returns a close bound of the eigenvalues of $D^{-1} A$ for rectangles with coefficient one.
pub(crate) fn largest_eigenvalue(grid: &BoxGrid) -> f64 {
    let kinds = [0, 1, 2].map(|axis| extremes(grid.widths(axis)));
    let of_cell = |at: [usize; 3]| largest_of_cell(grid, [0, 1, 2].map(|axis| &kinds[axis][at[axis]]));
    RAISE * all(kinds.each_ref().map(Vec::len)).map(of_cell).fold(0.0, f64::max)
}

/// Returns the diagonals of mass and stiffness of an axis.
fn diagonals(degree: usize, widths: &[f64]) -> [Vec<f64>; 2] {
    if widths.is_empty() {
        return [vec![1.0], vec![0.0]];
    }
    let mut sums = [0, 1].map(|_| vec![0.0; degree * widths.len() + 1]);
    for (cell, width) in widths.iter().enumerate() {
        for (sum, table) in sums.iter_mut().zip(matrices(degree, &[*width])) {
            (0..=degree).for_each(|i| sum[degree * cell + i] += table.row(i)[i]);
        }
    }
    sums
}

/// Returns a diagonal entry from those of the axes.
fn entry(axes: &[[Vec<f64>; 2]; 3], at: [usize; 3]) -> f64 {
    let [[mx, kx], [my, ky], [mz, kz]] =
        [0, 1, 2].map(|axis| [0, 1].map(|which| axes[axis][which][at[axis]]));
    kx * my * mz + mx * ky * mz + mx * my * kz
}

/// Returns the narrowest and the widest cell along an axis; none for an absent axis.
fn extremes(widths: &[f64]) -> Vec<Vec<f64>> {
    let narrowest = widths.iter().copied().reduce(f64::min);
    let widest = widths.iter().copied().reduce(f64::max);
    match (narrowest, widest) {
        (Some(narrowest), Some(widest)) if narrowest < widest => vec![vec![narrowest], vec![widest]],
        (Some(width), _) => vec![vec![width]],
        _ => vec![Vec::new()],
    }
}

/// Returns the largest eigenvalue of $D^{-1} A$ of a cell.
fn largest_of_cell(grid: &BoxGrid, widths: [&Vec<f64>; 3]) -> f64 {
    let lines = widths.map(|widths| Line::<f64>::new(grid.degree(), widths));
    let axes = widths.map(|widths| diagonals(grid.degree(), widths));
    let sizes = lines.each_ref().map(|line| line.mass.n_cols());
    let diagonal: Vec<f64> = all(sizes).map(|at| entry(&axes, at)).collect();
    largest_of(&diagonal, |x| apply(&lines, x), &mut Vec::new())
}

/// Returns the largest eigenvalue of $D^{-1} A$ by the power method, starting from `x` and updating it; an empty `x`
/// starts from an arbitrary vector.
fn largest_of(diagonal: &[f64], apply: impl Fn(&[f64]) -> Vec<f64>, x: &mut Vec<f64>) -> f64 {
    let n_steps = POWERS[usize::from(!x.is_empty())];
    x.resize(diagonal.len(), 0.0);
    // Adds a component in every direction, also to the result of another cell.
    x.iter_mut().enumerate().for_each(|(i, x)| *x += 0.1 * (i as f64).mul_add(0.7, 1.0).sin());
    let mut largest = 0.0;
    for _ in 0..n_steps {
        let y = apply(x);
        let energy: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
        let size: f64 = x.iter().zip(diagonal).map(|(x, d)| x * d * x).sum();
        largest = energy / size;
        let scale = size.sqrt().recip();
        *x = y.iter().zip(diagonal).map(|(y, d)| scale * y / d).collect();
    }
    largest
}

/// Applies $K_x M_y M_z + M_x K_y M_z + M_x M_y K_z$ of a cell.
fn apply(lines: &[Line<f64>; 3], x: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; x.len()];
    for term in 0..lines.iter().filter(|line| !line.widths.is_empty()).count() {
        let (mut values, mut inner) = (x.to_vec(), 1);
        for (axis, line) in lines.iter().enumerate() {
            let factor: &Factor<f64> = if axis == term { &line.stiffness } else { &line.mass };
            let mut next = vec![0.0; values.len()];
            contract_reference(factor, (inner, 1), &values, &mut next);
            inner *= factor.n_rows();
            values = next;
        }
        sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the inverse diagonal; zero on the boundary.
    fn inverse_diagonal(grid: &BoxGrid) -> Vec<f64> {
        let axes = [0, 1, 2].map(|axis| diagonals(grid.degree(), grid.widths(axis)));
        all(grid.nodes()).map(|at| if grid.is_given(at) { 0.0 } else { 1.0 / entry(&axes, at) }).collect()
    }

    #[test]
    fn cells_bound_the_eigenvalues_of_grids_closely() {
        let cpu = Cpu::new(1).unwrap();
        for (degree, widths) in [
            (1, vec![vec![0.25; 4]; 2]),
            (3, vec![vec![0.25, 0.1, 0.3], vec![0.2; 4]]),
            (1, vec![vec![0.25; 4]; 3]),
            (2, vec![vec![0.25; 4], vec![0.05; 4], vec![0.25; 3]]),
            (4, vec![vec![0.5; 3]; 3]),
            (4, vec![vec![0.5; 4]; 2]),
            (6, vec![vec![0.5; 2]; 3]),
        ] {
            let free = [[true; 2], [false, true], [true; 2]];
            let grid = BoxGrid::new(degree, &widths).unwrap().with_free_sides(free).unwrap();
            let (operator, bound) = (BoxOperator::<f64>::new(&cpu, &grid), largest_eigenvalue(&grid));
            let inverse = &inverse_diagonal(&grid);
            let mut x: Vec<f64> =
                (0..grid.n_nodes()).map(|i| ((i * 7919 % 1009) as f64 - 504.0) / 504.0).collect();
            grid.clear_given(&mut x);
            let mut largest = 0.0;
            let mut y = x.clone();
            for _ in 0..200 {
                operator.residual(&mut y, &vec![0.0; x.len()], &x);
                let energy: f64 = -x.iter().zip(&y).map(|(x, y)| x * y).sum::<f64>();
                let is_inside = |d: &&f64| **d > 0.0;
                let size: f64 =
                    x.iter().zip(inverse).filter(|(_, d)| is_inside(d)).map(|(x, d)| x * x / d).sum();
                largest = energy / size;
                x = y.iter().zip(inverse).map(|(y, d)| -y * d / size.sqrt()).collect();
            }
            assert!(bound >= largest, "{degree}: {} {largest}", bound);
            assert!(bound < 1.6 * largest, "{degree}: {} {largest}", bound);
        }
    }
}
