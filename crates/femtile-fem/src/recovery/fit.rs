//! Least-squares fits of polynomials to values at scattered points.

/// A polynomial of some total degree, $q(x) = \sum_k c_k\,T_{i_k}(\xi_1)\,T_{j_k}(\xi_2)\,T_{l_k}(\xi_3)$ with Chebyshev polynomials T
/// and $\xi = F\,(x - x_0)$.
#[derive(Debug, Clone)]
pub(super) struct Polynomial {
    dimension: usize,
    degree: usize,
    centre: [f64; 3],
    /// F, lower triangular.
    frame: [[f64; 3]; 3],
    coefficients: Vec<f64>,
}

/// Smallest share of a column of the least-squares matrix that must be independent of the columns before it.
///
/// Rows of slightly bent cells determine all terms, but amplify errors of the values strongly.
const INDEPENDENT: f64 = 0.02;
/// The largest factor by which the gradient of a fit of degree k amplifies errors of the values, over $k^2$.
/// It is relative to a line through the same number of points; $k^2$ is the growth of gradients of
/// polynomials with bounded values.
const AMPLIFIED: f64 = 4.0;
/// The smallest pivot of a covariance, relative to its diagonal entry.
const FLAT: f64 = 1e-12;

impl Polynomial {
    /// Fits a polynomial of a total degree to values at points. None unless the points determine the
    /// polynomial and its gradient at a given place well, with at least one value to spare.
    ///
    /// Coordinates are scaled so that the points have covariance I; the fit does not depend on affine maps of the
    /// points.
    pub fn fit(
        (dimension, degree): (usize, usize),
        points: &[[f64; 3]],
        values: &[f64],
        place: [f64; 3],
    ) -> Option<Self> {
        let (n, m) = (n_terms(dimension, degree), points.len());
        if m <= n {
            return None;
        }
        let mut fit =
            Self { dimension, degree, centre: [0.0; 3], frame: [[0.0; 3]; 3], coefficients: Vec::new() };
        fit.centre = std::array::from_fn(|a| points.iter().map(|p| p[a]).sum::<f64>() / m as f64);
        fit.frame = whitening(dimension, fit.centre, points)?;
        let largest = points.iter().flat_map(|&p| fit.local(p)).fold(0.0, |x: f64, y| x.max(y.abs()));
        fit.frame.iter_mut().flatten().for_each(|entry| *entry /= largest);
        // Constants have no gradient: subtracting the mean reduces rounding errors.
        let mean = values.iter().sum::<f64>() / m as f64;
        // By rows, each with its value as the last entry.
        let (mut matrix, mut axes) = (vec![0.0; m * (n + 1)], [[0.0; MAX_DEGREE + 1]; 3]);
        for (row, (&point, value)) in matrix.chunks_exact_mut(n + 1).zip(points.iter().zip(values)) {
            axes.iter_mut().zip(fit.local(point)).for_each(|(axis, t)| chebyshev(axis, t, degree));
            let [x, y, z] = &axes;
            fit.for_terms(|k, [i, j, l]| row[k] = x[i] * y[j] * z[l]);
            row[n] = value - mean;
        }
        let diagonal = triangularize(&mut matrix, n)?;
        // Coordinates have a root mean square of 1/largest, and m values determine a line.
        let bound = AMPLIFIED * (degree * degree) as f64 * largest / (m as f64).sqrt();
        let mut by_terms = vec![[0.0; 3]; n];
        fit.slopes(place, |k, slope| by_terms[k] = slope);
        solve_transposed(&matrix, &diagonal, &mut by_terms);
        let norm = |axis: usize| by_terms.iter().map(|x| x[axis] * x[axis]).sum::<f64>().sqrt();
        if !(0..dimension).all(|axis| norm(axis) <= bound) {
            return None;
        }
        fit.coefficients = solve_triangular(&matrix, &diagonal);
        Some(fit)
    }

    /// Returns the linear polynomial of three coordinates with a gradient, and the value 0 at the origin.
    pub fn linear(gradient: [f64; 3]) -> Self {
        let frame = std::array::from_fn(|a| std::array::from_fn(|b| f64::from(u8::from(a == b))));
        // The term of the last axis comes first.
        let coefficients = std::iter::once(0.0).chain(gradient.into_iter().rev()).collect();
        Self { dimension: 3, degree: 1, centre: [0.0; 3], frame, coefficients }
    }

    /// Returns the total degree.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Returns $\nabla q$ at a point.
    pub fn gradient(&self, point: [f64; 3]) -> [f64; 3] {
        let mut local = [0.0; 3];
        self.slopes(point, |k, slope| (0..3).for_each(|a| local[a] += self.coefficients[k] * slope[a]));
        std::array::from_fn(|a| (0..self.dimension).map(|b| self.frame[b][a] * local[b]).sum())
    }

    /// Calls `visit` with the number and the derivatives by ξ of each term at a point.
    fn slopes(&self, point: [f64; 3], mut visit: impl FnMut(usize, [f64; 3])) {
        let [mut values, mut slopes] = [[[0.0; MAX_DEGREE + 1]; 3]; 2];
        for ((values, slopes), t) in values.iter_mut().zip(&mut slopes).zip(self.local(point)) {
            chebyshev(values, t, self.degree);
            slopes[1] = 1.0;
            for k in 2..=self.degree {
                slopes[k] = 2.0 * values[k - 1] + 2.0 * t * slopes[k - 1] - slopes[k - 2];
            }
        }
        let ([x, y, z], [dx, dy, dz]) = (&values, &slopes);
        self.for_terms(|k, [i, j, l]| {
            visit(k, [dx[i] * y[j] * z[l], x[i] * dy[j] * z[l], x[i] * y[j] * dz[l]]);
        });
    }

    /// Returns ξ of a point.
    fn local(&self, point: [f64; 3]) -> [f64; 3] {
        self.frame.map(|row| (0..3).map(|a| row[a] * (point[a] - self.centre[a])).sum())
    }

    /// Calls `visit` with the number and the exponents of each term.
    fn for_terms(&self, mut visit: impl FnMut(usize, [usize; 3])) {
        let mut k = 0;
        for i in 0..=self.degree {
            for j in 0..=self.degree - i {
                for l in 0..=if self.dimension == 3 { self.degree - i - j } else { 0 } {
                    visit(k, [i, j, l]);
                    k += 1;
                }
            }
        }
    }
}

/// Returns the number of terms of a polynomial of a total degree: $\binom{k + d}{d}$.
fn n_terms(dimension: usize, degree: usize) -> usize {
    (1..=dimension).fold(1, |n, a| n * (degree + a) / a)
}

/// Returns $L^{-1}$ of the Cholesky factor of the covariance of points; none if they lie in a plane or on a line.
fn whitening(dimension: usize, centre: [f64; 3], points: &[[f64; 3]]) -> Option<[[f64; 3]; 3]> {
    let mut covariance = [[0.0; 3]; 3];
    for point in points {
        let offset: [f64; 3] = std::array::from_fn(|a| point[a] - centre[a]);
        for a in 0..dimension {
            (0..=a).for_each(|b| covariance[a][b] += offset[a] * offset[b] / points.len() as f64);
        }
    }
    let (mut factor, mut inverse) = ([[0.0; 3]; 3], [[0.0; 3]; 3]);
    for a in 0..dimension {
        for b in 0..=a {
            let known: f64 = (0..b).map(|k| factor[a][k] * factor[b][k]).sum();
            let rest = covariance[a][b] - known;
            if b < a {
                factor[a][b] = rest / factor[b][b];
            } else if rest > FLAT * covariance[a][a] {
                factor[a][a] = f64::sqrt(rest);
            } else {
                return None;
            }
        }
        inverse[a][a] = 1.0 / factor[a][a];
        for b in 0..a {
            let known: f64 = (b..a).map(|k| factor[a][k] * inverse[k][b]).sum();
            inverse[a][b] = -known / factor[a][a];
        }
    }
    Some(inverse)
}

/// Highest degree of a fitted polynomial.
const MAX_DEGREE: usize = femtile_space::MAX_DEGREE + 1;

/// Writes $T_0 … T_k$ at t.
fn chebyshev(values: &mut [f64; MAX_DEGREE + 1], t: f64, degree: usize) {
    (values[0], values[1]) = (1.0, t);
    for k in 2..=degree {
        values[k] = 2.0 * t * values[k - 1] - values[k - 2];
    }
}

/// Brings a matrix of `n` columns, stored by rows that end in the right side, to triangular form R by Householder reflections, and
/// applies them to the right side; returns the diagonal of R, whose other entries the matrix has. None if a column depends on those
/// before it.
fn triangularize(matrix: &mut [f64], n: usize) -> Option<Vec<f64>> {
    let (mut diagonal, mut factors) = (vec![0.0; n], vec![0.0; n + 1]);
    for k in 0..n {
        let (known, rest) = matrix.split_at_mut(k * (n + 1));
        let square = |rows: &[f64]| rows.chunks_exact(n + 1).map(|row| row[k] * row[k]).sum::<f64>();
        let square_below = square(rest);
        let (length, size) = (square_below.sqrt(), (square(known) + square_below).sqrt());
        if length.is_nan() || length <= INDEPENDENT * size {
            return None;
        }
        diagonal[k] = if rest[k] > 0.0 { -length } else { length };
        rest[k] -= diagonal[k];
        // 2 over the square of the reflected vector.
        let scale = -1.0 / (diagonal[k] * rest[k]);
        let factors = &mut factors[k + 1..];
        factors.fill(0.0);
        for row in rest.chunks_exact(n + 1) {
            let (v, others) = (row[k], &row[k + 1..]);
            factors.iter_mut().zip(others).for_each(|(factor, x)| *factor += v * x);
        }
        factors.iter_mut().for_each(|factor| *factor *= scale);
        for row in rest.chunks_exact_mut(n + 1) {
            let (v, others) = (row[k], &mut row[k + 1..]);
            others.iter_mut().zip(&*factors).for_each(|(x, factor)| *x -= factor * v);
        }
    }
    Some(diagonal)
}

/// Solves $R x = b$ with the result of [`triangularize`].
fn solve_triangular(matrix: &[f64], diagonal: &[f64]) -> Vec<f64> {
    let n = diagonal.len();
    let mut solution = vec![0.0; n];
    for (k, row) in matrix.chunks_exact(n + 1).enumerate().take(n).rev() {
        let known: f64 = (k + 1..n).map(|j| row[j] * solution[j]).sum();
        solution[k] = (row[n] - known) / diagonal[k];
    }
    solution
}

/// Solves $R^\mathsf{T} x = b$ in place for three right sides: x has the norm of the weights of the values in $b \cdot c$.
fn solve_transposed(matrix: &[f64], diagonal: &[f64], x: &mut [[f64; 3]]) {
    let n = diagonal.len();
    for (k, (row, pivot)) in matrix.chunks_exact(n + 1).zip(diagonal).enumerate() {
        x[k] = x[k].map(|x| x / pivot);
        let (done, rest) = x.split_at_mut(k + 1);
        for (x, entry) in rest.iter_mut().zip(&row[k + 1..n]) {
            (0..3).for_each(|a| x[a] -= entry * done[k][a]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns points in a stretched and rotated box.
    fn scattered(dimension: usize, n: usize, stretch: f64) -> Vec<[f64; 3]> {
        let fraction = |i: usize, step: f64| (i as f64 * step).fract() - 0.5;
        let point = |i: usize| {
            let [x, y] = [fraction(i, 0.754_877_666), stretch * fraction(i, 0.569_840_291)];
            let z = if dimension == 3 { fraction(i, 0.327_116_77) } else { 0.0 };
            [5.0 + 0.8 * x - 0.6 * y, 0.6 * x + 0.8 * y - 7.0, z]
        };
        (0..n).map(point).collect()
    }

    #[test]
    fn polynomials_of_the_degree_are_reproduced_on_points_in_any_affine_position() {
        for dimension in [2, 3] {
            for degree in 1..=5 {
                for stretch in [1.0, 1e-4] {
                    let points = scattered(dimension, 3 * n_terms(dimension, degree), stretch);
                    let power = degree as i32;
                    let f = |[x, y, z]: [f64; 3]| (0.2 * x + 0.1 * y - 0.3 * z).powi(power) + y - 2.0 * x;
                    let values: Vec<f64> = points.iter().map(|&p| f(p)).collect();
                    let fit =
                        Polynomial::fit((dimension, degree), &points, &values, [5.0, -7.0, 0.0]).unwrap();
                    for &p in &points[..5] {
                        let inner = f64::from(power) * (0.2 * p[0] + 0.1 * p[1] - 0.3 * p[2]).powi(power - 1);
                        let last = if dimension == 3 { -0.3 * inner } else { 0.0 };
                        let expected = [0.2 * inner - 2.0, 0.1 * inner + 1.0, last];
                        let found = fit.gradient(p);
                        let tolerance = 1e-11 / stretch;
                        assert!(
                            (0..3).all(|a| (found[a] - expected[a]).abs() < tolerance),
                            "{dimension} {degree} {stretch}: {found:?} instead of {expected:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn linear_polynomials_have_their_gradient() {
        assert_eq!(Polynomial::linear([2.0, -3.0, 0.0]).gradient([4.0, 5.0, 0.0]), [2.0, -3.0, 0.0]);
        assert_eq!(Polynomial::linear([2.0, -3.0, 7.0]).gradient([4.0, 5.0, 6.0]), [2.0, -3.0, 7.0]);
    }

    #[test]
    fn points_that_do_not_determine_a_polynomial_are_refused() {
        let circle: Vec<[f64; 3]> = (0..12).map(|i| [f64::from(i).cos(), f64::from(i).sin(), 0.0]).collect();
        // x² + y² is constant on a circle.
        assert!(Polynomial::fit((2, 2), &circle, &[0.0; 12], [0.0; 3]).is_none());
        assert!(Polynomial::fit((2, 1), &circle, &[0.0; 12], [0.0; 3]).is_some());
        let line: Vec<[f64; 3]> = (0..12).map(|i| [f64::from(i), 2.0 * f64::from(i), 0.0]).collect();
        assert!(Polynomial::fit((2, 1), &line, &[0.0; 12], [0.0; 3]).is_none());
        assert!(Polynomial::fit((3, 1), &circle, &[0.0; 12], [0.0; 3]).is_none());
        assert!(Polynomial::fit((2, 3), &circle[..9], &[0.0; 9], [0.0; 3]).is_none());
    }

    #[test]
    fn terms_are_as_many_as_the_polynomials_of_the_degree() {
        assert_eq!([1, 2, 3].map(|degree| n_terms(2, degree)), [3, 6, 10]);
        assert_eq!([1, 2, 3].map(|degree| n_terms(3, degree)), [4, 10, 20]);
        assert_eq!(n_terms(3, 11), 364);
    }
}
