//! Shape functions of simplices, as combinations of orthogonal polynomials.

use std::ops::{Add, Mul, Sub};

use super::Tabulation;

/// The Lagrange basis of all polynomials of a total degree on a reference simplex.
#[derive(Debug, Clone)]
pub(super) struct SimplexBasis {
    dimension: usize,
    degree: usize,
    /// Coefficients of the shape functions, the inverse of the matrix of Vandermonde: `[n][n]`, rows by orthogonal
    /// polynomials.
    coefficients: Vec<f64>,
}

impl SimplexBasis {
    /// Creates the basis for nodes, as many as there are polynomials.
    pub fn new(dimension: usize, degree: usize, nodes: &[[f64; 3]]) -> Self {
        let vandermonde: Vec<Vec<f64>> = nodes
            .iter()
            .map(|&node| orthogonal(dimension, degree, node).iter().map(|p| p.value).collect())
            .collect();
        Self { dimension, degree, coefficients: inverse(vandermonde) }
    }

    /// Evaluates all shape functions and their gradients at points.
    pub fn tabulate(&self, points: &[[f64; 3]]) -> Tabulation {
        let n = self.coefficients.len().isqrt();
        let mut found = Tabulation {
            n_dofs: n,
            values: vec![0.0; n * points.len()],
            gradients: vec![[0.0; 3]; n * points.len()],
        };
        for (point, &at) in points.iter().enumerate() {
            let values = &mut found.values[point * n..][..n];
            let gradients = &mut found.gradients[point * n..][..n];
            let orthogonal = orthogonal(self.dimension, self.degree, at);
            for (polynomial, row) in orthogonal.iter().zip(self.coefficients.chunks_exact(n)) {
                for (shape, factor) in row.iter().enumerate() {
                    values[shape] += factor * polynomial.value;
                    (0..3).for_each(|axis| gradients[shape][axis] += factor * polynomial.gradient[axis]);
                }
            }
        }
        found
    }
}

/// A polynomial at a point: its value and its gradient.
#[derive(Debug, Clone, Copy)]
struct Dual {
    value: f64,
    gradient: [f64; 3],
}

impl Dual {
    fn constant(value: f64) -> Self {
        Self { value, gradient: [0.0; 3] }
    }

    fn combine(self, other: Self, own: f64, others: f64) -> Self {
        Self {
            value: own * self.value + others * other.value,
            gradient: std::array::from_fn(|axis| own * self.gradient[axis] + others * other.gradient[axis]),
        }
    }
}

impl Add for Dual {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.combine(other, 1.0, 1.0)
    }
}

impl Sub for Dual {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.combine(other, 1.0, -1.0)
    }
}

impl Mul for Dual {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let Self { gradient, .. } = self.combine(other, other.value, self.value);
        Self { value: self.value * other.value, gradient }
    }
}

impl Mul<Dual> for f64 {
    type Output = Dual;

    fn mul(self, other: Dual) -> Dual {
        other.combine(other, self, 0.0)
    }
}

/// Evaluates orthogonal polynomials, by total degrees in each direction.
///
/// With barycentric coordinates $\lambda$ and partial sums $s_a = \lambda_0 + … + \lambda_a$, polynomial $(i_1, …, i_d)$ is
/// $$ \prod_a s_a^{i_a} P_{i_a}^{(\alpha_a, 0)}\!\left(\frac{\lambda_a - s_{a-1}}{s_a}\right),
///    \qquad \alpha_a = 2(i_1 + … + i_{a-1}) + a - 1. $$
///
/// # Source
/// `[karniadakis2005]`, chapter 3, with powers of the partial sums in place of quotients.
fn orthogonal(dimension: usize, degree: usize, at: [f64; 3]) -> Vec<Dual> {
    let coordinate = |axis: usize| {
        let mut gradient = [0.0; 3];
        gradient[axis] = 1.0;
        Dual { value: at[axis], gradient }
    };
    let first = (0..dimension).fold(Dual::constant(1.0), |rest, axis| rest - coordinate(axis));
    // Products of the factors so far, with their total degree.
    let mut found = vec![(0, Dual::constant(1.0))];
    let mut sum = first;
    for axis in 0..dimension {
        let (difference, next) = (coordinate(axis) - sum, sum + coordinate(axis));
        let mut products = Vec::new();
        for (total, product) in found {
            let factors = jacobi(degree - total, (2 * total + axis) as f64, difference, next);
            products.extend(factors.into_iter().enumerate().map(|(i, factor)| (total + i, product * factor)));
        }
        (found, sum) = (products, next);
    }
    found.into_iter().map(|(_, polynomial)| polynomial).collect()
}

/// Evaluates $s^k P_k^{(\alpha,0)}(t/s)$ for k up to `n`, by the three-term recurrence.
fn jacobi(n: usize, alpha: f64, t: Dual, s: Dual) -> Vec<Dual> {
    let mut found = vec![Dual::constant(1.0)];
    if n > 0 {
        found.push(0.5 * (alpha * s + (alpha + 2.0) * t));
    }
    for index in 2..=n {
        let k = index as f64;
        let c = 2.0 * k + alpha;
        let linear = (c - 1.0) * (c * (c - 2.0) * t + alpha * alpha * s);
        let last = 2.0 * (k + alpha - 1.0) * (k - 1.0) * c * (s * s);
        let scale = 1.0 / (2.0 * k * (k + alpha) * (c - 2.0));
        found.push(scale * (linear * found[index - 1] - last * found[index - 2]));
    }
    found
}

/// Returns the inverse of a regular matrix, by rows, by elimination with the largest pivot of each column.
fn inverse(mut matrix: Vec<Vec<f64>>) -> Vec<f64> {
    let n = matrix.len();
    for (i, row) in matrix.iter_mut().enumerate() {
        row.extend((0..n).map(|j| f64::from(i == j)));
    }
    for column in 0..n {
        let size = |row: &usize| matrix[*row][column].abs();
        let pivot = (column..n).max_by(|a, b| size(a).total_cmp(&size(b))).unwrap_or(column);
        matrix.swap(column, pivot);
        let scale = 1.0 / matrix[column][column];
        matrix[column].iter_mut().for_each(|entry| *entry *= scale);
        let eliminated = matrix[column].clone();
        for (_, row) in matrix.iter_mut().enumerate().filter(|(row, _)| *row != column) {
            let factor = row[column];
            row.iter_mut().zip(&eliminated).for_each(|(entry, other)| *entry -= factor * other);
        }
    }
    matrix.iter().flat_map(|row| &row[n..]).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use femtile_element::quadrature::simplex;

    #[test]
    fn polynomials_are_orthogonal_and_as_many_as_their_space_has_dimensions() {
        for (dimension, degree, n) in [(2, 5, 21), (3, 4, 35)] {
            let mut gram = vec![0.0; n * n];
            for ([_, at @ ..], weight) in simplex(dimension, 2 * degree).iter() {
                let values: Vec<f64> = orthogonal(dimension, degree, at).iter().map(|p| p.value).collect();
                assert_eq!(values.len(), n);
                (0..n * n).for_each(|ij| gram[ij] += weight * values[ij / n] * values[ij % n]);
            }
            for ij in 0..n * n {
                assert!(if ij / n == ij % n { gram[ij] > 1e-3 } else { gram[ij].abs() < 1e-14 });
            }
        }
    }

    #[test]
    fn the_inverse_of_a_matrix_that_needs_pivots_is_exact() {
        let matrix = [[0.0, 2.0, 0.0], [0.0, 0.0, 4.0], [1.0, 0.0, 2.0]];
        let expected = [[0.0, -0.5, 1.0], [0.5, 0.0, 0.0], [0.0, 0.25, 0.0]];
        assert_eq!(inverse(matrix.map(|row| row.to_vec()).to_vec()), expected.as_flattened());
    }
}
