//! Symmetric rules in closed form, invariant under renumbering of the corners.

use super::Quadrature;

pub(super) fn centroid(dimension: usize) -> Quadrature {
    let mut point = [0.0; 4];
    point[..=dimension].fill(1.0 / (dimension + 1) as f64);
    Quadrature { dimension, degree: 1, points: vec![point], weights: vec![1.0] }
}

pub(super) fn triangle_degree_2() -> Quadrature {
    build(2, 2, &[Orbit::Corner(1.0 / 6.0, 1.0 / 3.0)])
}

/// Returns six points in two orbits, the other corners' coordinates being `(8 - √10 ± √(38 - 44 √0.4)) / 18`.
pub(super) fn triangle_degree_4() -> Quadrature {
    let root = (38.0 - 44.0 * 0.4_f64.sqrt()).sqrt();
    let a = [(8.0 - 10.0_f64.sqrt() + root) / 18.0, (8.0 - 10.0_f64.sqrt() - root) / 18.0];
    let spread = (213_125.0 - 53_320.0 * 10.0_f64.sqrt()).sqrt();
    let w = [(620.0 + spread) / 3720.0, (620.0 - spread) / 3720.0];
    build(2, 4, &[Orbit::Corner(a[0], w[0]), Orbit::Corner(a[1], w[1])])
}

pub(super) fn triangle_degree_5() -> Quadrature {
    let root = 15.0_f64.sqrt();
    let orbits = [
        Orbit::Middle(9.0 / 40.0),
        Orbit::Corner((6.0 - root) / 21.0, (155.0 - root) / 1200.0),
        Orbit::Corner((6.0 + root) / 21.0, (155.0 + root) / 1200.0),
    ];
    build(2, 5, &orbits)
}

pub(super) fn tetrahedron_degree_2() -> Quadrature {
    build(3, 2, &[Orbit::Corner((5.0 - 5.0_f64.sqrt()) / 20.0, 0.25)])
}

/// Returns eight points of equal weight on the lines from the centroid to the corners.
///
/// A point at $\lambda_a = \frac14 + \delta$ and $\frac14 - \frac\delta3$ otherwise has central moments
/// $\delta^2/3$ and $2\delta^3/9$; matching the simplex asks for
/// $\delta_1^2 + \delta_2^2 = 9/40$ and $\delta_1^3 + \delta_2^3 = 9/160$, so the sum $s$ of both solves
/// $s^3 - \frac{27}{40} s + \frac{9}{80} = 0$; its smallest positive root keeps both points inside.
pub(super) fn tetrahedron_degree_3() -> Quadrature {
    let radius = (4.0 * 27.0 / 120.0_f64).sqrt();
    let angle = (-9.0 / 160.0 / (9.0 / 40.0_f64).powf(1.5)).acos();
    let sum = radius * ((angle - 2.0 * std::f64::consts::PI) / 3.0).cos();
    let product = 0.5 * (sum * sum - 9.0 / 40.0);
    let root = (sum * sum - 4.0 * product).sqrt();
    let orbit = |delta: f64| Orbit::Corner(0.25 - delta / 3.0, 0.125);
    build(3, 3, &[orbit(0.5 * (sum + root)), orbit(0.5 * (sum - root))])
}

pub(super) fn tetrahedron_degree_5() -> Quadrature {
    let root = 15.0_f64.sqrt();
    let orbits = [
        Orbit::Middle(16.0 / 135.0),
        Orbit::Corner((7.0 - root) / 34.0, (2665.0 + 14.0 * root) / 37_800.0),
        Orbit::Corner((7.0 + root) / 34.0, (2665.0 - 14.0 * root) / 37_800.0),
        Orbit::Edge((10.0 - 2.0 * root) / 40.0, 20.0 / 378.0),
    ];
    build(3, 5, &orbits)
}

/// An orbit of points under the symmetries of the simplex, with the weight of each point.
enum Orbit {
    /// The centroid.
    Middle(f64),
    /// One point towards each corner, all its other coordinates equal to the first number.
    Corner(f64, f64),
    /// One point towards the middle of each edge of a tetrahedron, two coordinates equal to the first number.
    Edge(f64, f64),
}

fn build(dimension: usize, degree: usize, orbits: &[Orbit]) -> Quadrature {
    let n = dimension + 1;
    let mut rule = Quadrature { dimension, degree, points: Vec::new(), weights: Vec::new() };
    for orbit in orbits {
        match *orbit {
            Orbit::Middle(weight) => {
                rule.points.extend(centroid(dimension).points);
                rule.weights.push(weight);
            }
            Orbit::Corner(a, weight) => {
                for corner in 0..n {
                    let mut point = [0.0; 4];
                    point[..n].fill(a);
                    point[corner] = 1.0 - a * dimension as f64;
                    rule.points.push(point);
                    rule.weights.push(weight);
                }
            }
            Orbit::Edge(a, weight) => {
                for (i, j) in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)] {
                    let mut point = [0.5 - a; 4];
                    (point[i], point[j]) = (a, a);
                    rule.points.push(point);
                    rule.weights.push(weight);
                }
            }
        }
    }
    rule
}
