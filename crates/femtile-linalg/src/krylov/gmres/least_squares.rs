/// The small problem $\min_y \|\beta e_1 - H y\|$ of a growing Hessenberg matrix, kept triangular by rotations.
#[derive(Debug)]
pub(super) struct LeastSquares {
    /// Columns of the triangle, each down to its diagonal entry.
    columns: Vec<Vec<f64>>,
    /// Cosine and sine of the rotation of each column.
    rotations: Vec<[f64; 2]>,
    /// The rotated right side; the magnitude of its last entry is that of the residual.
    right: Vec<f64>,
}

impl LeastSquares {
    /// Of no column, with this β.
    pub fn new(beta: f64) -> Self {
        Self { columns: Vec::new(), rotations: Vec::new(), right: vec![beta] }
    }

    /// Appends a column of H, its entry below the diagonal last; returns the new diagonal entry of the triangular factor.
    pub fn push(&mut self, mut column: Vec<f64>) -> f64 {
        let place = self.rotations.len();
        for (row, [c, s]) in self.rotations.iter().enumerate() {
            let [upper, lower] = [column[row], column[row + 1]];
            (column[row], column[row + 1]) = (c * upper + s * lower, c * lower - s * upper);
        }
        let [diagonal, below] = [column[place], column[place + 1]];
        let pivot = diagonal.hypot(below);
        let [c, s] = if pivot > 0.0 { [diagonal / pivot, below / pivot] } else { [1.0, 0.0] };
        column.truncate(place);
        column.push(pivot);
        self.columns.push(column);
        self.rotations.push([c, s]);
        self.right.push(-s * self.right[place]);
        self.right[place] *= c;
        pivot
    }

    /// The length of the residual of the best y.
    pub fn residual(&self) -> f64 {
        self.right.last().map_or(0.0, |last| last.abs())
    }

    /// The best y of the first columns, whose entries on the diagonal are not zero.
    pub fn solve(&self, n_columns: usize) -> Vec<f64> {
        let mut y = self.right[..n_columns].to_vec();
        for row in (0..n_columns).rev() {
            let (above, own) = y.split_at_mut(row);
            let column = &self.columns[row];
            own[0] /= column[row];
            above.iter_mut().zip(column).for_each(|(to, entry)| *to -= entry * own[0]);
        }
        y
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_solution_satisfies_the_normal_equations() {
        // H of five rows and four columns.
        let h = |i: usize, j: usize| if i <= j + 1 { ((3 * i + 7 * j + 1) as f64).sin() + 0.1 } else { 0.0 };
        let mut small = LeastSquares::new(2.0);
        for j in 0..4 {
            small.push((0..j + 2).map(|i| h(i, j)).collect());
        }
        let y = small.solve(4);
        let product = |i: usize| (0..4).map(|j| h(i, j) * y[j]).sum::<f64>();
        let r: Vec<f64> = (0..5).map(|i| if i == 0 { 2.0 } else { 0.0 } - product(i)).collect();
        for j in 0..4 {
            assert!((0..5).map(|i| h(i, j) * r[i]).sum::<f64>().abs() < 1e-14);
        }
        let length = r.iter().map(|r| r * r).sum::<f64>().sqrt();
        assert!((length - small.residual()).abs() < 1e-14);
    }
}
