//! The coarsest level: its inverse, as a matrix.

use femtile_device::Scalar;

use super::rows::{RowAccess, Rows};
use crate::check;

/// A pivot below this share of its diagonal entry is treated as zero.
const SINGULAR: f64 = 1e-12;

/// The inverse of the matrix of the coarsest level.
#[derive(Debug)]
pub(crate) struct Inverse<T> {
    pub matrix: Rows<T>,
    /// Dimension of the null space to the precision of the matrix.
    pub n_zero: usize,
}

/// Returns a symmetric positive semidefinite matrix $G$ with $A G A = A$: the inverse where A is regular; the pseudoinverse
/// where A maps the near-nullspace `b`, if that is one vector, to zero up to rounding; else a generalized inverse in which
/// dependent unknowns are zero. Fails with row and pivot where A is not positive semidefinite.
///
/// The preconditioner of a hierarchy without other levels (`is_only`) must be definite, or residuals in its null space would
/// count as zero. Then $\sigma^{-1} b b^\mathsf{T}$ is kept, and dependent unknowns get the reciprocal of their diagonal
/// entry.
///
/// # Cost
/// $2 n^3 / 3$ operations.
/// # Source
/// Cholesky's factorisation, `[golub2013]`, section 4.2. With $A b = 0$ and $|b| = 1$,
/// $(A + \sigma b b^\mathsf{T})^{-1} = A^+ + \sigma^{-1} b b^\mathsf{T}$, whose last term the projection removes.
pub(crate) fn inverse<T: Scalar>(
    a: &Rows<T>,
    b: Option<&[f64]>,
    is_only: bool,
) -> Result<Inverse<T>, (usize, f64)> {
    let n = a.n_rows();
    let Factor { l, nullspace } = factor_of(a, b)?;
    let mut columns_of = vec![0.0; n * n];
    for (i, column) in columns_of.chunks_mut(n.max(1)).enumerate() {
        solve(&l, n, i, column);
    }
    if is_only {
        let zeros = (0..n).filter(|&i| l[n * i + i] == 0.0);
        zeros.for_each(|i| columns_of[n * i + i] = 1.0 / check::diagonal_entry(a, i));
    } else if let Some(b) = &nullspace {
        project(&mut columns_of, b);
    }
    let entry = |i: usize, j: usize| 0.5 * (columns_of[n * i + j] + columns_of[n * j + i]);
    let matrix = Rows {
        n_cols: n,
        offsets: (0..=n).map(|row| n * row).collect(),
        columns: (0..n).flat_map(|_| 0..n as u32).collect(),
        values: (0..n * n).map(|i| T::from_f64(entry(i / n, i % n))).collect(),
    };
    Ok(Inverse { matrix, n_zero: n_zero_of(&l, n, nullspace.is_some()) })
}

/// Returns the dimension of the null space of a matrix to its precision, as [`Inverse::n_zero`].
pub(crate) fn n_zero<T: Scalar>(a: &Rows<T>, b: Option<&[f64]>) -> Result<usize, (usize, f64)> {
    let Factor { l, nullspace } = factor_of(a, b)?;
    Ok(n_zero_of(&l, a.n_rows(), nullspace.is_some()))
}

fn n_zero_of(l: &[f64], n: usize, has_nullspace: bool) -> usize {
    usize::from(has_nullspace) + (0..n).filter(|&i| l[n * i + i] == 0.0).count()
}

/// Factors a matrix, after adding $\sigma b b^\mathsf{T}$ with the mean σ of the diagonal if b is in the null space up to
/// rounding; returns the factor and b.
struct Factor {
    l: Vec<f64>,
    nullspace: Option<Vec<f64>>,
}

fn factor_of<T: Scalar>(a: &Rows<T>, b: Option<&[f64]>) -> Result<Factor, (usize, f64)> {
    let n = a.n_rows();
    let mut full = dense(a);
    let nullspace = b.and_then(|b| unit_of_no_energy(&full, b, tolerance::<T>()));
    if let Some(b) = &nullspace {
        let shift = (0..n).map(|i| full[n * i + i]).sum::<f64>() / n as f64;
        (0..n * n).for_each(|at| full[at] += shift * b[at / n] * b[at % n]);
    }
    Ok(Factor { l: factor(full, n, tolerance::<T>())?, nullspace })
}

/// Returns a vector of length one if a matrix maps it to zero up to the rounding of each row: a norm over all rows would not
/// see the few rows that determine a solution beside large coefficients.
fn unit_of_no_energy(a: &[f64], b: &[f64], tolerance: f64) -> Option<Vec<f64>> {
    let (n, length) = (b.len(), b.iter().map(|b| b * b).sum::<f64>().sqrt());
    let is_zero = |row: usize| {
        let terms = || a[n * row..n * (row + 1)].iter().zip(b).map(|(a, b)| a * b);
        terms().sum::<f64>().abs() <= tolerance * terms().map(f64::abs).sum::<f64>()
    };
    (length > 0.0 && (0..n).all(is_zero)).then(|| b.iter().map(|b| b / length).collect())
}

/// Projects out a unit vector from all columns and rows.
fn project(g: &mut [f64], b: &[f64]) {
    let n = b.len();
    for _ in 0..2 {
        for column in g.chunks_mut(n) {
            let along: f64 = column.iter().zip(b).map(|(g, b)| g * b).sum();
            column.iter_mut().zip(b).for_each(|(g, b)| *g -= along * b);
        }
        for i in 0..n {
            (0..i).for_each(|j| g.swap(n * i + j, n * j + i));
        }
    }
}

/// Tolerance of zero pivots: a rounded matrix is singular only to the precision of its rounding.
fn tolerance<T: Scalar>() -> f64 {
    SINGULAR.max(50.0 * T::EPSILON.to_f64())
}

fn dense<T: Scalar>(a: &Rows<T>) -> Vec<f64> {
    let n = a.n_rows();
    let mut full = vec![0.0; n * n];
    for row in 0..n {
        let (columns, values) = a.row(row);
        columns
            .iter()
            .zip(values)
            .for_each(|(&column, &value)| full[n * row + column as usize] = value.to_f64());
    }
    full
}

/// Returns the lower factor by rows with 1 / pivot on its diagonal, 0 for zero pivots.
fn factor(mut a: Vec<f64>, n: usize, tolerance: f64) -> Result<Vec<f64>, (usize, f64)> {
    for i in 0..n {
        let (above, row) = a.split_at_mut(n * i);
        for j in 0..i {
            let other = &above[n * j..n * j + j + 1];
            let dot: f64 = row[..j].iter().zip(other).map(|(x, y)| x * y).sum();
            row[j] = (row[j] - dot) * other[j];
        }
        let own = row[i];
        let pivot = own - row[..i].iter().map(|x| x * x).sum::<f64>();
        if !(pivot >= -tolerance * own.abs() && pivot.is_finite()) {
            return Err((i, pivot));
        }
        row[i] = if pivot <= tolerance * own.abs() { 0.0 } else { 1.0 / pivot.sqrt() };
    }
    Ok(a)
}

/// Solves for a unit vector.
fn solve(l: &[f64], n: usize, unit: usize, x: &mut [f64]) {
    x[unit] = 1.0;
    for i in unit..n {
        let row = &l[n * i..n * i + i + 1];
        let dot: f64 = row[unit..i].iter().zip(&x[unit..i]).map(|(l, x)| l * x).sum();
        x[i] = (x[i] - dot) * row[i];
    }
    for i in (0..n).rev() {
        x[i] *= l[n * i + i];
        let value = x[i];
        let row = &l[n * i..n * i + i];
        x[..i].iter_mut().zip(row).for_each(|(x, l)| *x -= l * value);
    }
}
