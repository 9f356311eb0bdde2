//! A dense Cholesky factorization in double-double arithmetic, some 32 digits.

use std::ops::{Add, Mul, Neg, Sub};

/// The unevaluated sum of two numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Double(f64, f64);

/// The sum of two numbers and its rounding error.
fn two_sum(a: f64, b: f64) -> Double {
    let sum = a + b;
    let of_b = sum - a;
    Double(sum, (a - (sum - of_b)) + (b - of_b))
}

impl From<f64> for Double {
    fn from(value: f64) -> Self {
        Self(value, 0.0)
    }
}

impl Add for Double {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let Self(high, low) = two_sum(self.0, other.0);
        let Self(of_low, rest) = two_sum(self.1, other.1);
        let Self(high, low) = two_sum(high, low + of_low);
        two_sum(high, low + rest)
    }
}

impl Neg for Double {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0, -self.1)
    }
}

impl Sub for Double {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Double {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let high = self.0 * other.0;
        let low = self.0.mul_add(other.0, -high) + (self.0 * other.1 + self.1 * other.0);
        two_sum(high, low)
    }
}

impl Double {
    fn over(self, other: Self) -> Self {
        let first = self.0 / other.0;
        let rest = self - other * Self::from(first);
        let second = rest.0 / other.0;
        let rest = rest - other * Self::from(second);
        Self::from(first) + Self::from(second) + Self::from(rest.0 / other.0)
    }
}

/// $\|x - x_*\|_A / \|x_*\|_A$ for the solution $x_*$ of $A x_* = b$; `matrix` has the columns of A one after another.
///
/// A matrix whose rows sum to zero, up to rounding, determines x up to a constant; energies do not see it.
pub fn relative_energy_error(matrix: &[f64], b: &[f64], x: &[f64]) -> f64 {
    let n = b.len();
    let symmetric = |i: usize, j: usize| 0.5 * (matrix[j * n + i] + matrix[i * n + j]);
    let a: Vec<Double> = (0..n * n).map(|k| symmetric(k / n, k % n).into()).collect();
    let mut factor = a.clone();
    let singular = (0..n).all(|i| {
        let row = &a[i * n..][..n];
        let sum = row.iter().fold(Double::default(), |sum, &entry| sum + entry);
        sum.0.abs() <= 1e-13 * row[i].0
    });
    if singular {
        let mean = (0..n).map(|i| a[i * n + i].0).sum::<f64>() / n as f64;
        factor.iter_mut().for_each(|entry| *entry = *entry + (mean / n as f64).into());
    }
    let b: Vec<Double> = b.iter().map(|&b| b.into()).collect();
    let mut exact = solve(&mut factor, &b);
    let mut error: Vec<Double> = exact.iter().zip(x).map(|(exact, &x)| *exact - x.into()).collect();
    // Squares of a solution that is very large or very small leave the range of numbers.
    let largest = exact.iter().map(|x| x.0.abs()).fold(0.0, f64::max);
    for value in exact.iter_mut().chain(&mut error) {
        *value = value.over(largest.into());
    }
    (energy(&a, &error) / energy(&a, &exact)).sqrt()
}

fn energy(a: &[Double], x: &[Double]) -> f64 {
    let n = x.len();
    let row = |i: usize| {
        let terms = a[i * n..][..n].iter().zip(x);
        x[i] * terms.fold(Double::default(), |sum, (&a, &x)| sum + a * x)
    };
    (0..n).map(row).fold(Double::default(), |sum, term| sum + term).0.max(0.0)
}

/// Factors a matrix in its place, $A = L D L^\mathsf{T}$, and solves with it.
fn solve(a: &mut [Double], b: &[Double]) -> Vec<Double> {
    let n = b.len();
    for k in 0..n {
        let (above, below) = a.split_at_mut((k + 1) * n);
        let pivot_row = &above[k * n..];
        for row in below.chunks_exact_mut(n) {
            if row[k] == Double::default() {
                continue;
            }
            let factor = row[k].over(pivot_row[k]);
            row[k] = factor;
            for j in k + 1..n {
                row[j] = row[j] - factor * pivot_row[j];
            }
        }
    }
    let mut x = b.to_vec();
    for i in 0..n {
        x[i] = (0..i).fold(x[i], |sum, j| sum - a[i * n + j] * x[j]);
    }
    for i in (0..n).rev() {
        let sum = (i + 1..n).fold(x[i], |sum, j| sum - a[i * n + j] * x[j]);
        x[i] = sum.over(a[i * n + i]);
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_matrix_that_is_nearly_singular_is_solved_to_all_digits_of_f64() {
        // Hilbert's matrix of order 8, condition number 1.5e10; a right side that is exact.
        let n = 8;
        let matrix: Vec<f64> = (0..n * n).map(|k| 840_840.0 / (k / n + k % n + 1) as f64).collect();
        let x: Vec<f64> = (0..n).map(|i| i as f64 - 3.0).collect();
        let sum = |i: usize| {
            (0..n).fold(Double::default(), |s, j| s + Double::from(matrix[i * n + j]) * x[j].into())
        };
        let b: Vec<Double> = (0..n).map(sum).collect();
        let mut a: Vec<Double> = matrix.iter().map(|&a| a.into()).collect();
        for (found, expected) in solve(&mut a, &b).iter().zip(&x) {
            assert!((found.0 - expected).abs() < 1e-14, "{found:?} {expected}");
        }
    }

    #[test]
    fn an_error_is_measured_in_the_energy_norm() {
        let matrix = [4.0, 0.0, 0.0, 9.0];
        let error = relative_energy_error(&matrix, &[4.0, 0.0], &[1.0, 1e-20]);
        assert!((error - 1.5e-20).abs() < 1e-33, "{error:e}");
        let tiny = relative_energy_error(&matrix, &[4e-200, 0.0], &[1e-200, 1e-205]);
        assert!((tiny - 1.5e-5).abs() < 1e-18, "{tiny:e}");
        let floating = [1.0, -1.0, -1.0, 1.0];
        assert!(relative_energy_error(&floating, &[1.0, -1.0], &[7.5, 6.5]) < 1e-14);
    }
}
