//! The generalized eigenproblem of small symmetric matrices.

/// Largest number of Jacobi sweeps, sufficient for matrices of these sizes.
const MAX_SWEEPS: usize = 60;

/// Returns eigenvalues λ and eigenvectors S, the columns of `[n][n]`, with $A S = M S \Lambda$ and
/// $S^\mathsf{T} M S = I$.
///
/// # Cost
/// $\mathcal{O}(n^3)$ per sweep of Jacobi's method on $L^{-1} A L^{-\mathsf{T}}$, $M = L L^\mathsf{T}$; about ten sweeps.
/// # Panics
/// When M is not positive definite.
/// # Source
/// `[cui2024]`, eq. (2.15).
pub(crate) fn generalized(n: usize, a: &[f64], m: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let l = cholesky(n, m);
    let mut c = a.to_vec();
    // L⁻¹ A, transposed, then L⁻¹ again: L⁻¹ A L⁻ᵀ by symmetry.
    for _ in 0..2 {
        solve_lower(n, &l, &mut c);
        transpose(n, &mut c);
    }
    let (values, mut vectors) = jacobi(n, c);
    solve_upper(n, &l, &mut vectors);
    (values, vectors)
}

/// Returns the Cholesky factor L: the lower triangle, row by row.
fn cholesky(n: usize, m: &[f64]) -> Vec<f64> {
    let mut l = vec![0.0; n * n];
    for i in 0..n {
        for j in 0..=i {
            let sum: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
            let rest = m[i * n + j] - sum;
            l[i * n + j] = if i == j { rest.sqrt() } else { rest / l[j * n + j] };
        }
        assert!(l[i * n + i] > 0.0, "the mass matrix is not positive definite");
    }
    l
}

/// $X \leftarrow L^{-1} X$.
fn solve_lower(n: usize, l: &[f64], x: &mut [f64]) {
    for i in 0..n {
        for k in 0..i {
            let factor = l[i * n + k];
            for column in 0..n {
                x[i * n + column] -= factor * x[k * n + column];
            }
        }
        x[i * n..(i + 1) * n].iter_mut().for_each(|x| *x /= l[i * n + i]);
    }
}

/// $X \leftarrow L^{-\mathsf{T}} X$.
fn solve_upper(n: usize, l: &[f64], x: &mut [f64]) {
    for i in (0..n).rev() {
        for k in i + 1..n {
            let factor = l[k * n + i];
            for column in 0..n {
                x[i * n + column] -= factor * x[k * n + column];
            }
        }
        x[i * n..(i + 1) * n].iter_mut().for_each(|x| *x /= l[i * n + i]);
    }
}

fn transpose(n: usize, x: &mut [f64]) {
    for i in 0..n {
        for j in 0..i {
            x.swap(i * n + j, j * n + i);
        }
    }
}

/// Returns eigenvalues and orthonormal eigenvectors, as columns, of a symmetric matrix.
fn jacobi(n: usize, mut a: Vec<f64>) -> (Vec<f64>, Vec<f64>) {
    let mut v: Vec<f64> = (0..n * n).map(|at| f64::from(u8::from(at / n == at % n))).collect();
    let norm: f64 = a.iter().map(|a| a * a).sum();
    for _ in 0..MAX_SWEEPS {
        let off: f64 = (0..n * n).filter(|at| at / n != at % n).map(|at| a[at] * a[at]).sum();
        if off <= 1e-34 * norm {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                rotate(n, &mut a, &mut v, p, q);
            }
        }
    }
    ((0..n).map(|i| a[i * n + i]).collect(), v)
}

/// Rotates the entry (p, q) to zero.
fn rotate(n: usize, a: &mut [f64], v: &mut [f64], p: usize, q: usize) {
    if a[p * n + q] == 0.0 {
        return;
    }
    let theta = (a[q * n + q] - a[p * n + p]) / (2.0 * a[p * n + q]);
    let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let c = 1.0 / (t * t + 1.0).sqrt();
    let s = t * c;
    let turn = |x: &mut [f64], i: usize, j: usize| {
        (x[i], x[j]) = (c * x[i] - s * x[j], s * x[i] + c * x[j]);
    };
    for k in 0..n {
        turn(a, p * n + k, q * n + k);
    }
    for k in 0..n {
        turn(a, k * n + p, k * n + q);
        turn(v, k * n + p, k * n + q);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_diagonalize_both_matrices() {
        for n in [1, 2, 3, 7, 19] {
            // A symmetric, diagonally dominant matrix.
            let entry = |i: usize, j: usize, shift: f64| {
                let (low, high) = (i.min(j) as f64, i.max(j) as f64);
                (1.3 * low + 0.7 * high * high).sin() + if i == j { shift + n as f64 } else { 0.0 }
            };
            let full = |shift| (0..n * n).map(|at| entry(at / n, at % n, shift)).collect::<Vec<_>>();
            let (a, m) = (full(0.5), full(3.0));
            let (values, s) = generalized(n, &a, &m);
            let form = |x: &[f64], i: usize, j: usize| {
                let terms = (0..n * n).map(|at| s[at / n * n + i] * x[at] * s[at % n * n + j]);
                terms.sum::<f64>()
            };
            for (i, value) in values.into_iter().enumerate() {
                for j in 0..n {
                    let (one, value) = if i == j { (1.0, value) } else { (0.0, 0.0) };
                    assert!((form(&m, i, j) - one).abs() < 1e-12, "mass {n} {i} {j}");
                    assert!((form(&a, i, j) - value).abs() < 1e-11, "stiffness {n} {i} {j}");
                }
            }
        }
    }
}
