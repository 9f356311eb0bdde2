use super::{Quadrature, gauss_jacobi};

/// Returns the product of Gauss–Jacobi rules through the map from a cube to a simplex.
///
/// $$ \lambda_1 = t_1, \quad \lambda_2 = (1 - t_1) t_2, \quad \lambda_3 = (1 - t_1)(1 - t_2) t_3, $$
///
/// whose determinant $(1-t_1)^{d-1} (1-t_2)^{d-2}$ becomes the weight of the 1-D rules. Not symmetric in the corners.
pub(super) fn conical(dimension: usize, degree: usize) -> Quadrature {
    let n = degree / 2 + 1;
    let rules: Vec<_> = (0..dimension).map(|axis| gauss_jacobi(n, dimension - 1 - axis)).collect();
    let mut rule = Quadrature { dimension, degree: 2 * n - 1, points: vec![[0.0; 4]], weights: vec![1.0] };
    // `points[0]` holds the remaining share of the later coordinates until the last axis is done.
    rule.points[0][0] = 1.0;
    for (axis, (ticks, shares)) in rules.iter().enumerate() {
        let (mut points, mut weights) = (Vec::new(), Vec::new());
        for (point, weight) in rule.iter() {
            for (t, share) in ticks.iter().zip(shares) {
                let mut next = point;
                next[axis + 1] = point[0] * t;
                next[0] = point[0] * (1.0 - t);
                points.push(next);
                weights.push(weight * share * (dimension - axis) as f64);
            }
        }
        (rule.points, rule.weights) = (points, weights);
    }
    rule
}
