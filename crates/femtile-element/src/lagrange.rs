/// Linear shape functions of a simplex with straight sides, one per corner.
///
/// On the reference simplex with corners $0, e_1, …, e_d$
///
/// $$ \varphi_0 = 1 - \xi_1 - … - \xi_d, \qquad \varphi_a = \xi_a \quad (1 \le a \le d), $$
///
/// so the values at a point are its barycentric coordinates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct P1 {
    /// Dimension of the simplex: 1, 2 or 3.
    pub dimension: usize,
}

impl P1 {
    /// Returns the number of shape functions.
    pub const fn n_shapes(self) -> usize {
        self.dimension + 1
    }

    /// Returns the values at a reference point; entries beyond the number of shapes are zero.
    pub fn values(self, reference: [f64; 3]) -> [f64; 4] {
        let mut values = [0.0; 4];
        values[0] = 1.0 - reference[..self.dimension].iter().sum::<f64>();
        values[1..=self.dimension].copy_from_slice(&reference[..self.dimension]);
        values
    }

    /// Returns the gradients in reference coordinates, constant on the simplex; unused entries are zero.
    pub fn reference_gradients(self) -> [[f64; 3]; 4] {
        let mut gradients = [[0.0; 3]; 4];
        for axis in 0..self.dimension {
            gradients[0][axis] = -1.0;
            gradients[axis + 1][axis] = 1.0;
        }
        gradients
    }

    /// Returns the mean of $\varphi_a \varphi_b$ over the simplex: $(1 + \delta_{ab}) / ((d+1)(d+2))$.
    pub fn mass_mean(self, a: usize, b: usize) -> f64 {
        let d = self.dimension as f64;
        (if a == b { 2.0 } else { 1.0 }) / ((d + 1.0) * (d + 2.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quadrature::simplex;

    #[test]
    fn values_sum_to_one_and_gradients_to_zero() {
        for dimension in 1..=3 {
            let element = P1 { dimension };
            let values = element.values([0.21, 0.13, 0.4]);
            assert!((values.iter().sum::<f64>() - 1.0).abs() < 1e-15);
            for axis in 0..3 {
                assert_eq!(element.reference_gradients().iter().map(|g| g[axis]).sum::<f64>(), 0.0);
            }
        }
    }

    #[test]
    fn mass_means_agree_with_quadrature() {
        for dimension in 1..=3 {
            let (element, rule) = (P1 { dimension }, simplex(dimension, 2));
            for a in 0..element.n_shapes() {
                for b in 0..element.n_shapes() {
                    let mean: f64 = rule.iter().map(|(point, weight)| weight * point[a] * point[b]).sum();
                    assert!((mean - element.mass_mean(a, b)).abs() < 1e-15, "{dimension} {a} {b}");
                }
            }
        }
    }
}
