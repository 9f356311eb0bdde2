use femtile_sum_factorization::SumFactorization;

use super::PostOrder;
use crate::axis::Banded;
use crate::grid::{BoxGrid, all};

/// The Gauss–Seidel method in node order, on one thread.
///
/// # Cost
/// Rows of the matrix are formed as tensor products of 1-D rows: up to $3 (2k+1)^d$ multiplications per node.
/// # Source
/// `[cui2024]`, Table 3.
#[derive(Debug, Clone)]
pub struct GaussSeidel<T> {
    grid: BoxGrid,
    /// Mass and stiffness of each axis.
    axes: [[Banded<T>; 2]; 3],
}

impl<T: SumFactorization> GaussSeidel<T> {
    pub fn new(grid: &BoxGrid) -> Self {
        let axes = [0, 1, 2].map(|axis| match grid.widths(axis) {
            [] => [Banded::one(), Banded { rows: vec![(0, vec![T::ZERO])], n_cols: 1 }],
            widths => Banded::of_axis(grid.degree(), widths),
        });
        Self { grid: grid.clone(), axes }
    }

    /// Applies one sweep.
    pub fn step(&self, x: &mut [T], b: &[T], order: PostOrder) {
        let inside = all(self.grid.nodes()).filter(|&at| !self.grid.is_given(at));
        let mut nodes: Vec<[usize; 3]> = inside.collect();
        if order == PostOrder::Reversed {
            nodes.reverse();
        }
        for at in nodes {
            self.relax(x, b, at);
        }
    }

    fn relax(&self, x: &mut [T], b: &[T], at: [usize; 3]) {
        let [n, m, _] = self.grid.nodes();
        let row = |axis: usize, which: usize| &self.axes[axis][which].rows[at[axis]].1;
        let firsts = [0, 1, 2].map(|axis| self.axes[axis][0].rows[at[axis]].0);
        let node = (at[2] * m + at[1]) * n + at[0];
        let (mut product, mut diagonal) = (T::ZERO, T::ZERO);
        for [i, j, k] in all([0, 1, 2].map(|axis| row(axis, 0).len())) {
            let [mx, kx] = [0, 1].map(|which| row(0, which)[i]);
            let [my, ky] = [0, 1].map(|which| row(1, which)[j]);
            let [mz, kz] = [0, 1].map(|which| row(2, which)[k]);
            let entry = (kx * my + mx * ky) * mz + mx * my * kz;
            let column = ((firsts[2] + k) * m + firsts[1] + j) * n + firsts[0] + i;
            product += entry * x[column];
            if column == node {
                diagonal = entry;
            }
        }
        x[node] += (b[node] - product) / diagonal;
    }
}
