//! Dense linear algebra on matrices extracted column by column from an operator.

use femtile_device::{Buffer, Cpu, Element};
use femtile_linalg::LinearOperator;
use femtile_multigrid::BoxGrid;

/// Returns interior nodes and those on free sides, in order.
pub fn inside(grid: &BoxGrid) -> Vec<usize> {
    let ([n, m, l], free) = (grid.nodes(), grid.free_sides());
    let is_inside = |axis: usize, at: usize, n: usize| {
        n == 1 || ((at > 0 || free[axis][0]) && (at + 1 < n || free[axis][1]))
    };
    let node =
        |&i: &usize| is_inside(0, i % n, n) && is_inside(1, i / n % m, m) && is_inside(2, i / (n * m), l);
    (0..grid.n_nodes()).filter(node).collect()
}

/// Returns all entries, row by row.
pub fn matrix(a: &dyn LinearOperator<f64, Cpu>) -> Vec<f64> {
    let n = a.n_rows();
    let mut entries = vec![0.0; n * n];
    for column in 0..n {
        let mut unit = vec![0.0; n];
        unit[column] = 1.0;
        let x = Buffer::from_vec(a.device(), unit).unwrap();
        let mut y = Buffer::from_vec(a.device(), vec![f64::NAN; n]).unwrap();
        a.apply(&mut y, &x).unwrap();
        for (row, value) in y.as_slice().iter().enumerate() {
            entries[row * n + column] = *value;
        }
    }
    entries
}

/// Solves A x = b for chosen rows and columns of an n × n matrix, by elimination with pivoting.
pub fn solve(a: &[f64], n: usize, chosen: &[usize], b: &[f64]) -> Vec<f64> {
    let size = chosen.len();
    let mut rows: Vec<Vec<f64>> =
        (0..size).map(|i| chosen.iter().map(|&j| a[chosen[i] * n + j]).chain([b[i]]).collect()).collect();
    for k in 0..size {
        let pivot = (k..size).max_by(|&i, &j| rows[i][k].abs().total_cmp(&rows[j][k].abs())).unwrap();
        rows.swap(k, pivot);
        let top = rows[k].clone();
        for row in &mut rows[k + 1..] {
            let factor = row[k] / top[k];
            row.iter_mut().zip(&top).for_each(|(entry, top)| *entry -= factor * top);
        }
    }
    for k in (0..size).rev() {
        let sum: f64 = (k + 1..size).map(|j| rows[k][j] * rows[j][size]).sum();
        rows[k][size] = (rows[k][size] - sum) / rows[k][k];
    }
    rows.iter().map(|row| row[size]).collect()
}

/// Returns random numbers between −1 and 1 at interior nodes and those on free sides.
pub fn random(grid: &BoxGrid, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    let mut x = vec![0.0; grid.n_nodes()];
    inside(grid).into_iter().for_each(|node| x[node] = next());
    x
}

pub fn dot(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

pub fn largest(x: &[f64]) -> f64 {
    x.iter().fold(0.0, |largest, x| x.abs().max(largest))
}

/// Copies to a device.
pub fn on<T: Element>(cpu: &Cpu, x: &[T]) -> Buffer<T, Cpu> {
    Buffer::from_host(cpu, x).unwrap()
}
