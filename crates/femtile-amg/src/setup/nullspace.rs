//! The null space of a matrix among the vectors of a near-nullspace, part by part.

use femtile_device::{Device, Scalar};
use femtile_linalg::eigen::{Dense, symmetric_eigen};
use femtile_sparse::csr::Csr;

use super::rows::{RowAccess, Rows};
use super::tentative::NearNullspace;
use crate::builder::near_nullspace_of;
use crate::{AmgConfig, AmgError};

/// The share of a vector that must remain after orthogonalization for it to be independent.
const INDEPENDENT: f64 = 1e-8;

/// Row by row, a matrix maps a vector to zero that sums to at most this share of the sizes of the terms.
const NULL: f64 = 1e-11;

/// A unit vector in the null space, zero outside one connected part of the matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct NullVector {
    /// The rows of the part, ascending.
    pub rows: Vec<u32>,
    /// The values there.
    pub values: Vec<f64>,
}

impl NullVector {
    /// Returns all of its `n` entries.
    pub(crate) fn dense(&self, n: usize) -> Vec<f64> {
        let mut all = vec![0.0; n];
        self.rows.iter().zip(&self.values).for_each(|(&row, &value)| all[row as usize] = value);
        all
    }

    /// Removes its part of a vector; returns the length of that part.
    pub fn project(&self, x: &mut [f64]) -> f64 {
        let along: f64 = self.rows.iter().zip(&self.values).map(|(&row, v)| x[row as usize] * v).sum();
        self.rows.iter().zip(&self.values).for_each(|(&row, v)| x[row as usize] -= along * v);
        along.abs()
    }
}

/// Returns an orthonormal basis of the null space of a symmetric matrix within its near-nullspace; arguments
/// as in [`Amg::new`](crate::Amg::new). These are constants, or rigid motions, of each part
/// without Dirichlet values. Each row of the matrix maps such a vector to at most $10^{-11}$ times the sizes
/// of the terms.
///
/// # Cost
/// Copies the matrix; passes over it for each vector and to find its parts.
/// # Errors
/// [`AmgError::Setting`] for vectors of another length; errors of the device.
pub fn nullspace<T: Scalar, D: Device>(
    a: &Csr<T, D>,
    near_nullspace: Option<&[f64]>,
    config: &AmgConfig,
) -> Result<Vec<NullVector>, AmgError> {
    let b = near_nullspace_of(a.n_rows(), near_nullspace, config)?;
    Ok(null_vectors(&Rows::<f64>::of(a)?.0, &b, NULL))
}

/// Returns an orthonormal basis of the part of the near-nullspace that a symmetric matrix maps to zero on a
/// connected part. Zero means up to `tolerance` times the absolute sum of the terms of each row. A norm over
/// all rows would not see the few rows that determine a solution beside large coefficients.
///
/// # Cost
/// A pass over the non-zeros for each vector, and one to find the parts.
pub(crate) fn null_vectors<T: Scalar>(a: &Rows<T>, b: &NearNullspace, tolerance: f64) -> Vec<NullVector> {
    let mut place = vec![0; a.n_rows()];
    let mut found = Vec::new();
    for rows in parts(a) {
        rows.iter().enumerate().for_each(|(i, &row)| place[row as usize] = i);
        let of_part = of_part(a, b, (&rows, &place), tolerance);
        found.extend(of_part.into_iter().map(|values| NullVector { rows: rows.clone(), values }));
    }
    found
}

/// The rows of each connected part, ascending, parts by their first rows.
fn parts<T: Scalar>(a: &Rows<T>) -> Vec<Vec<u32>> {
    let n = a.n_rows();
    let (mut is_seen, mut parts, mut open) = (vec![false; n], Vec::new(), Vec::new());
    for first in 0..n {
        if is_seen[first] {
            continue;
        }
        is_seen[first] = true;
        open.push(first as u32);
        let mut part = Vec::new();
        while let Some(row) = open.pop() {
            part.push(row);
            let (columns, values) = a.row(row as usize);
            for (&column, &value) in columns.iter().zip(values) {
                if value != T::ZERO && !is_seen[column as usize] {
                    is_seen[column as usize] = true;
                    open.push(column);
                }
            }
        }
        part.sort_unstable();
        parts.push(part);
    }
    parts
}

/// Those of one part: eigenvectors of $Q^\mathsf{T} A Q$ with an orthonormal basis Q of the near-nullspace, from the
/// smallest eigenvalue on.
fn of_part<T: Scalar>(
    a: &Rows<T>,
    b: &NearNullspace,
    (rows, place): (&[u32], &[usize]),
    tolerance: f64,
) -> Vec<Vec<f64>> {
    let k = b.n_vectors;
    let vector = |v: usize| rows.iter().map(|&row| b.values[k * row as usize + v]).collect();
    let basis = orthonormal((0..k).map(vector).collect());
    let product = |v: &[f64]| -> Vec<[f64; 2]> {
        let of_row = |&row: &u32| {
            let (columns, values) = a.row(row as usize);
            let terms = columns.iter().zip(values).filter(|(_, value)| **value != T::ZERO);
            let terms = terms.map(|(&column, value)| value.to_f64() * v[place[column as usize]]);
            terms.fold([0.0, 0.0], |[sum, size], term| [sum + term, size + term.abs()])
        };
        rows.iter().map(of_row).collect()
    };
    let is_null = |v: &[f64]| product(v).iter().all(|[sum, size]| sum.abs() <= tolerance * size);
    let combinations = match basis.as_slice() {
        [] | [_] => basis,
        _ => {
            let products: Vec<_> = basis.iter().map(|q| product(q)).collect();
            let dot = |q: &[f64], aq: &[[f64; 2]]| q.iter().zip(aq).map(|(q, aq)| q * aq[0]).sum();
            let n = basis.len();
            let (_, vectors) = symmetric_eigen(&Dense::of([n, n], |i, j| dot(&basis[i], &products[j])));
            let combine = |v: usize| {
                let of_row = |i: usize| basis.iter().enumerate().map(|(j, q)| vectors[(j, v)] * q[i]).sum();
                (0..rows.len()).map(of_row).collect::<Vec<f64>>()
            };
            (0..n).map(combine).collect()
        }
    };
    combinations.into_iter().take_while(|v| is_null(v)).collect()
}

/// Orthonormalizes vectors and drops those that depend on others.
pub(crate) fn orthonormal(vectors: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let dot = |x: &[f64], y: &[f64]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f64>();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for mut vector in vectors {
        let before = dot(&vector, &vector).sqrt();
        for _ in 0..2 {
            for q in &basis {
                let along = dot(&vector, q);
                vector.iter_mut().zip(q).for_each(|(v, q)| *v -= along * q);
            }
        }
        let after = dot(&vector, &vector).sqrt();
        if after > INDEPENDENT * before {
            vector.iter_mut().for_each(|v| *v /= after);
            basis.push(vector);
        }
    }
    basis
}
