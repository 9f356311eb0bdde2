//! Tensor-product quadrature rules on quadrilaterals and hexahedra.

use femtile_element::quadrature::{gauss_legendre, gauss_lobatto};

/// The quadrature rule along each axis of a cell with elements of degree p.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellRule {
    /// Gauss quadrature with p + 1 + `extra` points.
    Gauss {
        /// Points beyond p + 1.
        extra: usize,
    },
    /// Gauss–Lobatto quadrature with p + 1 points, which are the nodes of the element: less exact, and values need no
    /// interpolation.
    GaussLobatto,
}

impl Default for CellRule {
    /// Returns Gauss quadrature with p + 1 points.
    fn default() -> Self {
        Self::Gauss { extra: 0 }
    }
}

impl CellRule {
    /// Returns the number of points along an axis.
    pub fn n_points(self, degree: usize) -> usize {
        match self {
            Self::Gauss { extra } => degree + 1 + extra,
            Self::GaussLobatto => degree + 1,
        }
    }

    /// Returns the points on [0, 1], ascending, and their weights.
    ///
    /// # Panics
    /// For degree 0 with [`Self::GaussLobatto`], which needs both ends.
    pub fn rule(self, degree: usize) -> (Vec<f64>, Vec<f64>) {
        let n = self.n_points(degree);
        match self {
            Self::Gauss { .. } => gauss_legendre(n),
            Self::GaussLobatto => gauss_lobatto(n),
        }
    }

    /// Returns the weights of the product rule in `d` dimensions, the first axis fastest: `[n_points^d]`.
    pub fn product_weights(self, degree: usize, d: usize) -> Vec<f64> {
        let (_, weights) = self.rule(degree);
        let times = |found: Vec<f64>| weights.iter().flat_map(|w| found.iter().map(move |f| w * f)).collect();
        (0..d).fold(vec![1.0], |found, _| times(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn product_weights_sum_to_one_and_run_along_the_first_axis() {
        for rule in [CellRule::default(), CellRule::Gauss { extra: 1 }, CellRule::GaussLobatto] {
            let (points, weights) = rule.rule(3);
            assert_eq!(points.len(), rule.n_points(3));
            for d in 1..=3 {
                let product = rule.product_weights(3, d);
                assert_eq!(product.len(), points.len().pow(d as u32));
                assert!((product.iter().sum::<f64>() - 1.0).abs() < 1e-14);
            }
            let product = rule.product_weights(3, 2);
            assert!((product[1 + points.len() * 2] - weights[1] * weights[2]).abs() < 1e-16);
        }
    }
}
