//! Coefficients of orthonormal combinations.

use super::dense::{Dense, symmetric_eigen};

/// Eigenvalues of a Gram matrix with a diagonal of ones below which vectors count as dependent.
const DEPENDENT: f64 = 1e-13;

/// Eigenvalues of such a matrix below minus this are no rounding.
const NEGATIVE: f64 = 1e-6;

/// Passes after which combinations are orthonormal to rounding.
pub(super) const PASSES: usize = 2;

/// Returns C for which $C^\mathsf{T} G C = I$, with a column for each independent vector of a Gram matrix G; none, with the value, if G
/// is not positive semidefinite.
///
/// # Source
/// `[stathopoulos2002]`, Alg. 3 (SVQB). Differs: dependent vectors are left out.
pub(super) fn orthonormal(g: &Dense) -> Result<Dense, f64> {
    let n = g.n_columns();
    let largest = (0..n).map(|i| g[(i, i)]).fold(0.0, f64::max);
    let mut scales = Vec::with_capacity(n);
    for i in 0..n {
        let square = g[(i, i)];
        if !square.is_finite() || square < -NEGATIVE * largest {
            return Err(square);
        }
        scales.push(if square > 0.0 { 1.0 / square.sqrt() } else { 0.0 });
    }
    let (values, vectors) = symmetric_eigen(&Dense::of([n, n], |i, j| scales[i] * g[(i, j)] * scales[j]));
    if let Some(&least) = values.first().filter(|least| least.is_nan() || **least <= -NEGATIVE) {
        return Err(least);
    }
    let first = values.iter().position(|&value| value > DEPENDENT).unwrap_or(n);
    Ok(Dense::of([n, n - first], |i, j| scales[i] * vectors[(i, first + j)] / values[first + j].sqrt()))
}

/// Returns an orthonormal basis of the part of the columns of `d` that is orthogonal to the orthonormal columns of `c`.
pub(super) fn complement(c: &Dense, mut d: Dense) -> Dense {
    for _ in 0..PASSES {
        if d.n_columns() == 0 {
            break;
        }
        let along = c.times(&c.transpose().times(&d));
        d = Dense::of([d.n_rows(), d.n_columns()], |i, j| d[(i, j)] - along[(i, j)]);
        match orthonormal(&d.transpose().times(&d)) {
            Ok(factors) => d = d.times(&factors),
            Err(_) => return d.columns(0..0),
        }
    }
    d
}
