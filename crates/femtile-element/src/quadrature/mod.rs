//! Quadrature: small symmetric rules on simplices for low degrees, conical products beyond; Gauss rules on lines.

mod conical;
mod gauss;
mod lobatto;
mod symmetric;

pub use gauss::{gauss_jacobi, gauss_legendre};
pub use lobatto::gauss_lobatto;

/// The highest degree of [`simplex`].
pub const MAX_DEGREE: usize = 30;

/// A rule $\frac{1}{|T|}\int_T f \approx \sum_q w_q f(x_q)$ with positive weights and points inside the simplex.
#[derive(Debug, Clone, PartialEq)]
pub struct Quadrature {
    /// Dimension of the simplex: 1, 2 or 3.
    pub dimension: usize,
    /// Polynomials of this total degree, at least, are integrated exactly.
    pub degree: usize,
    /// Barycentric coordinates of the points; entries beyond the corners of the simplex are zero.
    pub points: Vec<[f64; 4]>,
    /// Weights; they sum to one.
    pub weights: Vec<f64>,
}

impl Quadrature {
    /// Returns the number of points.
    pub fn n_q(&self) -> usize {
        self.weights.len()
    }

    /// Iterates over points with their weights.
    pub fn iter(&self) -> impl Iterator<Item = ([f64; 4], f64)> + '_ {
        self.points.iter().copied().zip(self.weights.iter().copied())
    }
}

/// Returns the smallest available rule on a simplex that is exact for polynomials of a total degree.
///
/// Rules are symmetric, so independent of the numbering of corners, up to degree 3 on tetrahedra, 4 on triangles (and 5
/// on both); beyond, they are conical products of Gauss–Jacobi rules.
///
/// # Panics
/// If the dimension is not 1, 2 or 3, or the degree exceeds [`MAX_DEGREE`].
/// # Source
/// `[stroud1971]`, rules `T2:5-1` and `T3:5-1` for degree 5, chapter 2.4 for conical products.
pub fn simplex(dimension: usize, degree: usize) -> Quadrature {
    assert!((1..=3).contains(&dimension), "no quadrature in dimension {dimension}: 1, 2 and 3 are offered");
    assert!(degree <= MAX_DEGREE, "no quadrature of degree {degree}: {MAX_DEGREE} is the highest offered");
    match (dimension, degree) {
        (_, 0 | 1) => symmetric::centroid(dimension),
        (2, 2) => symmetric::triangle_degree_2(),
        (2, 3 | 4) => symmetric::triangle_degree_4(),
        (2, 5) => symmetric::triangle_degree_5(),
        (3, 2) => symmetric::tetrahedron_degree_2(),
        (3, 3) => symmetric::tetrahedron_degree_3(),
        (3, 4 | 5) => symmetric::tetrahedron_degree_5(),
        _ => conical::conical(dimension, degree),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the mean over the simplex of a product of powers of barycentric coordinates: $d! \prod k_i! / (d + \sum
    /// k_i)!$.
    fn monomial_mean(dimension: usize, powers: [usize; 4]) -> f64 {
        let factorial = |n: usize| (1..=n).map(|i| i as f64).product::<f64>();
        let numerator: f64 = powers.iter().map(|&k| factorial(k)).product();
        factorial(dimension) * numerator / factorial(dimension + powers.iter().sum::<usize>())
    }

    #[test]
    fn every_rule_is_exact_for_monomials_up_to_its_degree() {
        for dimension in 1..=3 {
            for degree in 0..=13 {
                let rule = simplex(dimension, degree);
                assert!(rule.degree >= degree);
                for_each_monomial(dimension, rule.degree, |powers| {
                    let terms = rule.iter().map(|(point, weight)| {
                        weight * point.iter().zip(powers).map(|(x, k)| x.powi(k as i32)).product::<f64>()
                    });
                    let (found, expected) = (terms.sum::<f64>(), monomial_mean(dimension, powers));
                    let error = (found - expected).abs();
                    assert!(error < 1e-14, "d = {dimension}, degree {degree}, {powers:?}: off by {error:e}");
                });
            }
        }
    }

    fn for_each_monomial(dimension: usize, degree: usize, mut f: impl FnMut([usize; 4])) {
        for i in 0..=degree {
            for j in 0..=(degree - i) * usize::from(dimension > 1) {
                for k in 0..=(degree - i - j) * usize::from(dimension > 2) {
                    f([0, i, j, k]);
                }
            }
        }
    }

    #[test]
    fn weights_are_positive_and_points_lie_inside() {
        for dimension in 1..=3 {
            for degree in 0..=MAX_DEGREE {
                for (point, weight) in simplex(dimension, degree).iter() {
                    assert!(weight > 0.0);
                    assert!(point[..=dimension].iter().all(|&x| x > 0.0 && x < 1.0 || dimension == 0));
                    assert!((point.iter().sum::<f64>() - 1.0).abs() < 1e-14);
                    assert!(point[dimension + 1..].iter().all(|&x| x == 0.0));
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "no quadrature of degree 31")]
    fn too_high_a_degree_is_refused() {
        simplex(3, MAX_DEGREE + 1);
    }
}
