//! The energy norm of the error, from the coefficients of conjugate gradients.

use super::cg::CgStep;

/// Factor on the smallest Ritz value, which is never below the smallest eigenvalue.
const SAFETY: f64 = 0.9;

/// Bisections of the logarithm that leave less than a hundredth of the smallest Ritz value open.
const BISECTIONS: usize = 14;

/// The smallest Ritz value lies within this factor of the smallest pivot.
const RANGE: f64 = 1e-30;

/// Returns the smallest eigenvalue of the tridiagonal matrix $T$ that conjugate gradients build, the smallest Ritz value of
/// $M^{-1} A$; none without steps.
///
/// $$ T = L D L^\mathsf{T}, \quad D_j = 1 / \alpha_j, \quad L_{j+1,j} = \sqrt{\rho_{j+1} / \rho_j} $$
///
/// It is found by bisection; negative pivots of $T - \mu I$ are counted by the differential form of the factorization,
/// which keeps small eigenvalues to full relative accuracy.
///
/// # Cost
/// Some 14 divisions per step.
/// # Source
/// The matrix: `[golub1997]`; its pivots in differential form: `[dhillon2004]`.
pub(super) fn smallest_ritz_value(steps: &[CgStep]) -> Option<f64> {
    let highest = steps.iter().map(|step| 1.0 / step.alpha).fold(f64::INFINITY, f64::min);
    if !(highest > 0.0 && highest.is_finite()) {
        return None;
    }
    let (mut low, mut high) = ((highest * RANGE).ln(), highest.ln());
    for _ in 0..BISECTIONS {
        let middle = 0.5 * (low + high);
        if has_eigenvalue_below(steps, middle.exp()) { high = middle } else { low = middle }
    }
    Some(high.exp())
}

/// Returns whether $T - \mu I$ has a negative pivot.
fn has_eigenvalue_below(steps: &[CgStep], mu: f64) -> bool {
    let mut shift = -mu;
    for (step, next) in steps.iter().zip(steps.iter().skip(1).map(Some).chain([None])) {
        let d = 1.0 / step.alpha;
        let pivot = d + shift;
        if pivot <= 0.0 {
            return true;
        }
        let Some(next) = next else { break };
        shift = shift * (next.rho / step.rho * d / pivot) - mu;
    }
    false
}

/// Returns an upper bound of the energy norm $\|x - x_k\|_A$ of the error after the last of `steps`; $\rho$
/// is $r^\mathsf{T} M^{-1} r$ at that point.
///
/// $$ \hat\gamma_0 = \frac{1}{\mu}, \quad
///    \hat\gamma_j = \frac{\hat\gamma_{j-1} - \alpha_j}{\mu (\hat\gamma_{j-1} - \alpha_j) + \rho_j / \rho_{j-1}}, \quad
///    \|x - x_k\|_A^2 \le \hat\gamma_k\, \rho \le \frac{\rho}{\mu} $$
///
/// This is the rule of Gauss and Radau with a node at $\mu$. It is a bound if $\mu$ is at most the smallest
/// eigenvalue of $M^{-1} A$. Here $\mu$ lies a tenth below the smallest Ritz value.
///
/// # Source
/// `[meurant2013]`.
pub(super) fn energy_error(steps: &[CgStep], rho: f64, smallest: f64) -> f64 {
    let mu = SAFETY * smallest;
    let mut gamma = 1.0 / mu;
    for (step, after) in steps.iter().zip(steps.iter().skip(1).map(|next| next.rho).chain([rho])) {
        let rest = gamma - step.alpha;
        gamma = if rest > 0.0 { rest / (mu * rest + after / step.rho) } else { 1.0 / mu };
    }
    (gamma.min(1.0 / mu) * rho).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Conjugate gradients on a diagonal matrix: steps, and ρ and the energy norm of the error after them.
    fn solve(eigenvalues: &[f64], n_steps: usize) -> (Vec<CgStep>, f64, f64) {
        let n = eigenvalues.len();
        let (mut x, mut r, mut p) = (vec![0.0; n], vec![1.0; n], vec![1.0; n]);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let mut rho = dot(&r, &r);
        let mut steps = Vec::new();
        for _ in 0..n_steps {
            let q: Vec<f64> = p.iter().zip(eigenvalues).map(|(p, e)| p * e).collect();
            let alpha = rho / dot(&p, &q);
            steps.push(CgStep { rho, alpha });
            for i in 0..n {
                x[i] += alpha * p[i];
                r[i] -= alpha * q[i];
            }
            let next = dot(&r, &r);
            for i in 0..n {
                p[i] = r[i] + next / rho * p[i];
            }
            rho = next;
        }
        let error = (0..n).map(|i| eigenvalues[i] * (1.0 / eigenvalues[i] - x[i]).powi(2)).sum::<f64>();
        (steps, rho, error.sqrt())
    }

    #[test]
    fn the_smallest_ritz_value_is_the_smallest_eigenvalue_once_all_are_seen() {
        for eigenvalues in [vec![3.0], vec![1e-9, 1.0, 2.0], vec![0.5, 0.7, 4.0, 1e5]] {
            let (steps, ..) = solve(&eigenvalues, eigenvalues.len());
            let found = smallest_ritz_value(&steps).unwrap();
            let smallest = eigenvalues.iter().copied().fold(f64::INFINITY, f64::min);
            assert!((found / smallest - 1.0).abs() < 0.02, "{found:e} for {smallest:e}");
        }
        assert_eq!(smallest_ritz_value(&[]), None);
    }

    #[test]
    fn the_bound_lies_above_the_error_and_not_far() {
        let eigenvalues: Vec<f64> = (1..=60).map(|i| f64::from(i) * f64::from(i)).collect();
        for n_steps in [5, 20, 40, 59] {
            let (steps, rho, error) = solve(&eigenvalues, n_steps);
            let bound = energy_error(&steps, rho, 1.0 / SAFETY);
            assert!(bound >= 0.999 * error, "{bound:e} below {error:e} after {n_steps}");
            assert!(bound <= 20.0 * error, "{bound:e} far above {error:e} after {n_steps}");
        }
    }
}
