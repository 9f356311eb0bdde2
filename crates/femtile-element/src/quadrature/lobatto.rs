/// Returns the Gauss–Lobatto–Legendre rule with `n` points on [0, 1], including both ends: points and weights, exact
/// for degree $2n - 3$.
///
/// Inner points are the zeros of $P_{n-1}'(2t - 1)$, found by Newton's method in the left half and mirrored to the
/// right half.
///
/// # Panics
/// With fewer than two points.
/// # Source
/// `[karniadakis2005]`, appendix B.
pub fn gauss_lobatto(n: usize) -> (Vec<f64>, Vec<f64>) {
    assert!(n >= 2, "a Gauss-Lobatto rule has two points at least, not {n}");
    let degree = n - 1;
    let scale = (degree * n) as f64;
    let (mut points, mut weights) = (vec![0.5; n], vec![0.0; n]);
    for i in 0..n.div_ceil(2) {
        let x = if 2 * i == degree { 0.0 } else { inner_zero(degree, i) };
        let (value, _) = legendre(degree, x);
        let weight = 1.0 / (scale * value * value);
        let left = 0.5 * (1.0 + x);
        (points[degree - i], points[i]) = (1.0 - left, left);
        (weights[i], weights[degree - i]) = (weight, weight);
    }
    (points, weights)
}

/// Returns the i-th extremum of the Legendre polynomial on [−1, 1], where i = 0 is the left end.
fn inner_zero(degree: usize, i: usize) -> f64 {
    if i == 0 {
        return -1.0;
    }
    let scale = (degree * (degree + 1)) as f64;
    // Chebyshev extrema are good initial guesses.
    let mut x = -(std::f64::consts::PI * i as f64 / degree as f64).cos();
    for _ in 0..100 {
        let (value, slope) = legendre(degree, x);
        let curvature = (2.0 * x * slope - scale * value) / (1.0 - x * x);
        let step = slope / curvature;
        x -= step;
        if step.abs() < 1e-16 {
            break;
        }
    }
    x
}

/// Returns the value and slope of the Legendre polynomial at x inside (−1, 1); at an end only the value is valid.
fn legendre(degree: usize, x: f64) -> (f64, f64) {
    let (mut before, mut value) = (0.0, 1.0);
    for k in 1..=degree {
        let k = k as f64;
        (before, value) = (value, ((2.0 * k - 1.0) * x * value - (k - 1.0) * before) / k);
    }
    (value, degree as f64 * (before - x * value) / (1.0 - x * x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_rules_are_those_of_the_textbook() {
        assert_eq!(gauss_lobatto(2), (vec![0.0, 1.0], vec![0.5, 0.5]));
        let (points, weights) = gauss_lobatto(3);
        assert_eq!(points, [0.0, 0.5, 1.0]);
        assert!((weights[1] - 2.0 / 3.0).abs() < 1e-15 && (weights[0] - 1.0 / 6.0).abs() < 1e-15);
        let (points, _) = gauss_lobatto(4);
        assert!((points[1] - 0.5 * (1.0 - 0.2_f64.sqrt())).abs() < 1e-15);
    }

    #[test]
    fn rules_integrate_powers_exactly_and_are_symmetric() {
        for n in 2..=20 {
            let (points, weights) = gauss_lobatto(n);
            assert!(points.is_sorted_by(|a, b| a < b) && weights.iter().all(|&weight| weight > 0.0));
            let is_mirrored =
                |i: usize| points[n - 1 - i] == 1.0 - points[i] && weights[i] == weights[n - 1 - i];
            assert!((0..n / 2).all(is_mirrored));
            for power in 0..2 * n - 2 {
                let found: f64 = points.iter().zip(&weights).map(|(x, w)| w * x.powi(power as i32)).sum();
                assert!((found - 1.0 / (power + 1) as f64).abs() < 1e-14, "n {n}, power {power}");
            }
        }
    }
}
