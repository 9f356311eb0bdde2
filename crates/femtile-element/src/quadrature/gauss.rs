/// Returns the Gauss–Legendre rule with `n` points on [0, 1]: points and weights, exact for degree $2n - 1$.
pub fn gauss_legendre(n: usize) -> (Vec<f64>, Vec<f64>) {
    gauss_jacobi(n, 0)
}

/// Returns the Gauss–Jacobi rule with `n` points for $\int_0^1 f(t)\,(1-t)^{\alpha}\,dt$, exact for degree $2n - 1$.
///
/// Points are the zeros of the Jacobi polynomial $P_n^{(\alpha,0)}(2t - 1)$, ascending, found one after another by
/// Newton's method with deflation of the known zeros.
///
/// # Source
/// `[karniadakis2005]`, appendix B.
pub fn gauss_jacobi(n: usize, alpha: usize) -> (Vec<f64>, Vec<f64>) {
    let mut zeros: Vec<f64> = Vec::with_capacity(n);
    for k in 0..n {
        // Chebyshev zeros are good initial guesses; the mean with the previous zero keeps them in order.
        let mut x = -((2 * k + 1) as f64 * std::f64::consts::PI / (2 * n) as f64).cos();
        if let Some(previous) = zeros.last() {
            x = 0.5 * (x + previous);
        }
        for _ in 0..100 {
            let (value, slope) = jacobi(n, alpha as f64, x);
            let known: f64 = zeros.iter().map(|zero| 1.0 / (x - zero)).sum();
            let step = value / (slope - known * value);
            x -= step;
            if step.abs() < 1e-16 {
                break;
            }
        }
        zeros.push(x);
    }
    let weight = |&x: &f64| {
        let (_, slope) = jacobi(n, alpha as f64, x);
        1.0 / ((1.0 - x * x) * slope * slope)
    };
    let weights = zeros.iter().map(weight).collect();
    (zeros.iter().map(|x| 0.5 * (1.0 + x)).collect(), weights)
}

/// Returns the value and slope of $P_n^{(\alpha,0)}$ at `x` inside (−1, 1), by the three-term recurrence.
fn jacobi(n: usize, alpha: f64, x: f64) -> (f64, f64) {
    let (mut previous, mut current) = (0.0, 1.0);
    for k in 1..=n {
        let k = k as f64;
        let c = 2.0 * k + alpha;
        let next = if k == 1.0 {
            0.5 * (alpha + (alpha + 2.0) * x)
        } else {
            let linear = (c - 1.0) * (c * (c - 2.0) * x + alpha * alpha);
            let last = 2.0 * (k + alpha - 1.0) * (k - 1.0) * c;
            (linear * current - last * previous) / (2.0 * k * (k + alpha) * (c - 2.0))
        };
        (previous, current) = (current, next);
    }
    let n = n as f64;
    let c = 2.0 * n + alpha;
    let slope = (n * (alpha - c * x) * current + 2.0 * (n + alpha) * n * previous) / (c * (1.0 - x * x));
    (current, slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_point_gauss_legendre_is_the_textbook_one() {
        let (points, weights) = gauss_legendre(2);
        let offset = 0.5 / 3.0_f64.sqrt();
        assert!((points[0] - (0.5 - offset)).abs() < 1e-15 && (points[1] - (0.5 + offset)).abs() < 1e-15);
        assert!(weights.iter().all(|w| (w - 0.5).abs() < 1e-15));
    }

    #[test]
    fn jacobi_rules_integrate_powers_exactly() {
        for alpha in 0..=2 {
            for n in 1..=16 {
                let (points, weights) = gauss_jacobi(n, alpha);
                for power in 0..2 * n {
                    let found: f64 =
                        points.iter().zip(&weights).map(|(x, w)| w * (1.0 - x).powi(power as i32)).sum();
                    let expected = 1.0 / (power + alpha + 1) as f64;
                    assert!((found - expected).abs() < 1e-14, "alpha {alpha}, n {n}, power {power}");
                }
            }
        }
    }
}
