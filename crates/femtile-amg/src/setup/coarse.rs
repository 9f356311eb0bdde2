//! The coarsest level: its inverse, as a matrix.

use femtile_device::Scalar;

use super::nullspace::{NullVector, null_vectors, orthonormal};
use super::rows::{RowAccess, Rows};
use super::tentative::NearNullspace;
use crate::coarsen::is_single;
use crate::{AmgError, check};

/// A pivot below this share of its diagonal entry is treated as zero.
const SINGULAR: f64 = 1e-12;
/// A negative pivot in double precision is one of rounding up to this share. Single precision leaves it to double.
const NEGATIVE: f64 = 1e-10;

/// Largest relative rounding error of the softest motion at which levels in f32 still work.
const SOFTEST: f64 = 0.01;

/// The inverse of the matrix of the coarsest level.
#[derive(Debug)]
pub(crate) struct Inverse<T> {
    pub matrix: Rows<T>,
    /// Dimension of the null space to the precision of the matrix.
    pub n_zero: usize,
}

/// Returns the inverse of a symmetric positive semidefinite matrix A, or its pseudoinverse if A is singular.
/// The null space is found among the near-nullspace `b`, part by part, and from pivots that are zero to the
/// precision of the matrix. Fails with row and pivot if A is not positive semidefinite.
///
/// The preconditioner of a hierarchy without other levels (`is_only`) must be definite, or residuals in its null space would
/// count as zero. Then $\sigma^{-1} v v^\mathsf{T}$ is kept for each null vector v.
///
/// # Cost
/// $2 n^3 / 3$ operations; half as many again if pivots are zero.
/// # Source
/// Cholesky's factorisation, `[golub2013]`, section 4.2. With $A v = 0$ and $|v| = 1$,
/// $(A + \sigma v v^\mathsf{T})^{-1} = A^+ + \sigma^{-1} v v^\mathsf{T}$, whose last term the projection removes.
pub(crate) fn inverse<T: Scalar>(
    a: &Rows<T>,
    b: Option<&NearNullspace>,
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
    } else {
        nullspace.iter().for_each(|v| project(&mut columns_of, n, v));
    }
    let entry = |i: usize, j: usize| 0.5 * (columns_of[n * i + j] + columns_of[n * j + i]);
    let matrix = Rows {
        n_cols: n,
        offsets: (0..=n).map(|row| n * row).collect(),
        columns: (0..n).flat_map(|_| 0..n as u32).collect(),
        values: (0..n * n).map(|i| T::from_f64(entry(i / n, i % n))).collect(),
    };
    Ok(Inverse { matrix, n_zero: n_zero_of(&l, n, &nullspace) })
}

/// Checks that the precision of levels in f32 resolves the softest motions of a coarsest level, from its diagonal and its inverse: such
/// as the bending of a slender beam, which has $10^{-6}$ times the energy of its cells.
///
/// # Errors
/// [`AmgError::Resolution`].
pub(crate) fn check_precision<T: Scalar>(diagonal: &[T], inverse: &Rows<T>) -> Result<(), AmgError> {
    let n_rows = diagonal.len();
    let is_soft = |row: &usize| {
        let energies = diagonal[*row].to_f64() * check::diagonal_entry(inverse, *row);
        energies * T::EPSILON.to_f64() > SOFTEST
    };
    if !is_single::<T>() {
        return Ok(());
    }
    match (0..n_rows).filter(is_soft).count() {
        0 => Ok(()),
        n_lost => Err(AmgError::Resolution { n_rows, n_lost }),
    }
}

/// Returns the dimension of the null space of a matrix to its precision, as [`Inverse::n_zero`].
pub(crate) fn n_zero<T: Scalar>(a: &Rows<T>, b: Option<&NearNullspace>) -> Result<usize, (usize, f64)> {
    let Factor { l, nullspace } = factor_of(a, b)?;
    Ok(n_zero_of(&l, a.n_rows(), &nullspace))
}

fn n_zero_of(l: &[f64], n: usize, nullspace: &[NullVector]) -> usize {
    nullspace.len() + (0..n).filter(|&i| l[n * i + i] == 0.0).count()
}

/// The factor of a matrix plus $\sigma v v^\mathsf{T}$ for each vector v of its null space, with the mean σ of the diagonal.
struct Factor {
    l: Vec<f64>,
    nullspace: Vec<NullVector>,
}

fn factor_of<T: Scalar>(a: &Rows<T>, b: Option<&NearNullspace>) -> Result<Factor, (usize, f64)> {
    let n = a.n_rows();
    let full = dense(a);
    let nullspace = b.map_or_else(Vec::new, |b| null_vectors(a, b, tolerance::<T>()));
    let l = factor(shifted(&full, n, &nullspace), n, tolerance::<T>())?;
    let zeros: Vec<usize> = (0..n).filter(|&i| l[n * i + i] == 0.0).collect();
    if zeros.is_empty() {
        return Ok(Factor { l, nullspace });
    }
    // A zero pivot gives a vector: one there, and what the rows before it make of that.
    let columns = zeros.iter().map(|&i| column_of_zero(&l, n, i));
    let known = nullspace.iter().map(|known| known.dense(n));
    let all: Vec<Vec<f64>> = orthonormal(known.chain(columns).collect());
    let more = all.into_iter().skip(nullspace.len());
    let of_all = |values| NullVector { rows: (0..n as u32).collect(), values };
    let mut whole = nullspace.clone();
    whole.extend(more.map(of_all));
    let again = factor(shifted(&full, n, &whole), n, tolerance::<T>());
    Ok(match again.ok().filter(|_| whole.len() == nullspace.len() + zeros.len()) {
        Some(l) => Factor { l, nullspace: whole },
        None => Factor { l, nullspace },
    })
}

/// Adds $\sigma v v^\mathsf{T}$ for each vector v.
fn shifted(full: &[f64], n: usize, nullspace: &[NullVector]) -> Vec<f64> {
    let mut full = full.to_vec();
    let shift = (0..n).map(|i| full[n * i + i]).sum::<f64>() / n as f64;
    for NullVector { rows, values } in nullspace {
        for (&i, v) in rows.iter().zip(values) {
            for (&j, w) in rows.iter().zip(values) {
                full[n * i as usize + j as usize] += shift * v * w;
            }
        }
    }
    full
}

/// Returns the solution of $A x = 0$ with one in the row of a zero pivot and zeros behind it.
fn column_of_zero(l: &[f64], n: usize, zero: usize) -> Vec<f64> {
    let mut x = vec![0.0; n];
    x[zero] = 1.0;
    // Rows of the factor before `zero`: L Lᵀ x = −a, where the row of the zero pivot holds L⁻¹ a.
    for i in (0..zero).rev() {
        let sum: f64 = (i + 1..=zero).map(|j| l[n * j + i] * x[j]).sum();
        x[i] = -sum * l[n * i + i];
    }
    x
}

/// Projects out a unit vector from all columns and rows.
fn project(g: &mut [f64], n: usize, NullVector { rows, values }: &NullVector) {
    for _ in 0..2 {
        for column in g.chunks_mut(n) {
            let along: f64 = rows.iter().zip(values).map(|(&row, b)| column[row as usize] * b).sum();
            rows.iter().zip(values).for_each(|(&row, b)| column[row as usize] -= along * b);
        }
        for i in 0..n {
            (0..i).for_each(|j| g.swap(n * i + j, n * j + i));
        }
    }
}

/// Tolerance of zero pivots and of null vectors: a rounded matrix is singular only to the precision of its rounding.
pub(crate) fn tolerance<T: Scalar>() -> f64 {
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
    let rounded = if tolerance > SINGULAR { tolerance } else { NEGATIVE };
    for i in 0..n {
        let (above, row) = a.split_at_mut(n * i);
        for j in 0..i {
            let other = &above[n * j..n * j + j + 1];
            let dot: f64 = row[..j].iter().zip(other).map(|(x, y)| x * y).sum();
            row[j] = (row[j] - dot) * other[j];
        }
        let own = row[i];
        let pivot = own - row[..i].iter().map(|x| x * x).sum::<f64>();
        if !(pivot >= -rounded * own.abs() && pivot.is_finite()) {
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
