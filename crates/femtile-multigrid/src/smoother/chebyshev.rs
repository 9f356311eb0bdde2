use femtile_device::{Buffer, Cpu};
use femtile_linalg::LinalgError;
use femtile_linalg::precondition::polynomial::{Step, chebyshev, largest_preconditioned, start_of_lanczos};
use femtile_sum_factorization::{Factor, SumFactorization, contract_reference};

use crate::axis::{Line, matrices};
use crate::cpu::each;
use crate::grid::{BoxGrid, all};
use crate::kernels::Refresh;
use crate::mapped::{CellGeometry, diagonal_of};
use crate::operator::BoxOperator;

/// Products per step: the degree of the polynomial.
pub(crate) const PRODUCTS: usize = 4;
/// Ratio of the largest eigenvalue to the smallest one that the step damps; coarser levels reduce errors of
/// smaller eigenvalues.
pub(crate) const RANGE: f64 = 15.0;
/// Steps of the power method on a cell.
const POWERS: usize = 300;
/// Lanczos steps on a grid of mapped cells.
const STEPS: usize = 16;
/// Safety factor on estimates, which are lower bounds.
const RAISE: f64 = 1.05;

/// The Chebyshev polynomial smoother in $D^{-1} A$ on mapped cells, D the diagonal of A.
///
/// # Cost
/// Four products and as many passes over three vectors per step; workspace of two vectors. Set-up takes 16 Lanczos steps.
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
    /// # Errors
    /// Errors of the operator.
    pub(crate) fn new(cpu: &Cpu, grid: &BoxGrid, geometry: &CellGeometry) -> Result<Self, LinalgError> {
        let mut diagonal = diagonal_of(grid, geometry);
        grid.clear_given(&mut diagonal);
        let inverse = |entry: &f64| if *entry == 0.0 { T::ZERO } else { T::from_f64(1.0 / entry) };
        let (operator, inverse_diagonal) =
            (BoxOperator::new(cpu, grid), diagonal.iter().map(inverse).collect::<Vec<T>>());
        // Every row has about the same part in the start.
        let start =
            |(node, entry): (usize, &f64)| start_of_lanczos::<T>(node as u64) * T::from_f64(entry.sqrt());
        let start = diagonal.iter().enumerate().map(start).collect();
        let solve = |z: &mut Buffer<T, Cpu>, r: &Buffer<T, Cpu>| {
            let r = r.as_slice();
            each(cpu, z.as_mut_slice(), |at, z| *z = inverse_diagonal[at] * r[at]);
            Ok(())
        };
        let largest = RAISE * largest_preconditioned(&operator, start, solve, STEPS)?;
        Ok(Self { cpu: cpu.clone(), operator, inverse_diagonal, largest })
    }

    /// Returns the estimate of the largest eigenvalue.
    pub fn largest(&self) -> f64 {
        self.largest
    }

    /// Sets the largest eigenvalue.
    pub fn set_largest(&mut self, largest: f64) {
        self.largest = largest;
    }

    /// Applies one polynomial; the step is symmetric. Arguments are those of [`RowChebyshev::step`](crate::rows::RowChebyshev::step).
    ///
    /// # Errors
    /// Those of `between`.
    pub fn step(
        &self,
        x: &mut Buffer<T, Cpu>,
        b: &[T],
        is_zero: bool,
        between: &mut Refresh<'_, T, Cpu>,
    ) -> Result<(), LinalgError> {
        let (mut r, mut direction) = (vec![T::ZERO; b.len()], vec![T::ZERO; b.len()]);
        let steps = chebyshev::<T>(PRODUCTS, [self.largest / RANGE, self.largest]);
        for (number, step) in steps.into_iter().enumerate() {
            if number > 0 {
                between(x)?;
            }
            let x = x.as_mut_slice();
            if number == 0 && is_zero {
                r.copy_from_slice(b);
            } else {
                self.operator.residual(&mut r, b, x);
            }
            self.advance([x, &mut direction], step, &r);
        }
        Ok(())
    }

    /// $d = \beta d + \alpha D^{-1} r$, $x = x + d$.
    fn advance(&self, [x, direction]: [&mut [T]; 2], Step { alpha, beta, .. }: Step<T>, r: &[T]) {
        let inverse = &self.inverse_diagonal;
        each(&self.cpu, direction, |at, d| *d = beta * *d + alpha * inverse[at] * r[at]);
        each(&self.cpu, x, |at, x| *x += direction[at]);
    }
}

/// Returns a close bound of the eigenvalues of $D^{-1} A$ for rectangles with coefficient one: the largest one of a single
/// cell, as A and D are sums over cells.
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
    largest_of(&diagonal, |x| apply(&lines, x))
}

/// Returns the largest eigenvalue of $D^{-1} A$ by the power method.
fn largest_of(diagonal: &[f64], apply: impl Fn(&[f64]) -> Vec<f64>) -> f64 {
    let mut x: Vec<f64> = (0..diagonal.len()).map(|i| 0.1 * (i as f64).mul_add(0.7, 1.0).sin()).collect();
    let mut largest = 0.0;
    for _ in 0..POWERS {
        let y = apply(&x);
        let energy: f64 = x.iter().zip(&y).map(|(x, y)| x * y).sum();
        let size: f64 = x.iter().zip(diagonal).map(|(x, d)| x * d * x).sum();
        largest = energy / size;
        let scale = size.sqrt().recip();
        x = y.iter().zip(diagonal).map(|(y, d)| scale * y / d).collect();
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
