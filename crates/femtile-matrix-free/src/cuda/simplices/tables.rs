//! Values and derivatives of the shape functions of a simplex, at points or in modes.

use femtile_space::{Element, ReferenceRule, SpaceError};

/// A linear map from the values at the nodes of a cell to values and derivatives along the axes of the reference cell, on which a
/// tangent acts point by point.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    pub n_points: usize,
    /// Whether all points have the weight one.
    pub has_unit_weights: bool,
    /// `[n_points][1 + dimension][n_nodes]`, then the weights of the points unless these are one.
    pub entries: Vec<f64>,
}

impl Table {
    /// Returns the values at the points of a quadrature rule.
    pub fn at_points(element: &Element, rule: &ReferenceRule) -> Self {
        let mut entries = rows(element, &rule.points).concat();
        entries.extend(&rule.weights);
        Self { n_points: rule.n_q(), has_unit_weights: false, entries }
    }

    /// Returns the coefficients in an orthonormal basis of polynomials of degree p − 1, or p if values are wanted and not only
    /// derivatives. The integral of a product of two functions is then the sum of the products of their coefficients, so that a
    /// tangent that is constant in a cell takes as few points as there are polynomials.
    ///
    /// With the values f at the nodes of these polynomials and their mass matrix $M = L L^\mathsf{T}$, the coefficients are
    /// $L^\mathsf{T} f$.
    ///
    /// # Errors
    /// None for the elements of simplices.
    pub fn in_modes(element: &Element, has_values: bool) -> Result<Self, SpaceError> {
        let (kind, d) = (element.kind(), element.dimension());
        let degree = element.degree() - usize::from(!has_values);
        let (nodes, factor) = if degree == 0 {
            let rule = element.quadrature(0);
            (vec![rule.points[0]], vec![vec![rule.weights.iter().sum::<f64>().sqrt()]])
        } else {
            let polynomials = Element::new(kind, degree)?;
            let rule = polynomials.quadrature(2 * degree);
            let values = polynomials.tabulate(&rule.points);
            let n = polynomials.n_dofs();
            let mut mass = vec![vec![0.0; n]; n];
            for (q, weight) in rule.weights.iter().enumerate() {
                let at = values.values(q);
                for i in 0..n {
                    (0..n).for_each(|j| mass[i][j] += weight * at[i] * at[j]);
                }
            }
            (polynomials.nodes().to_vec(), cholesky(mass))
        };
        let at_nodes = rows(element, &nodes);
        let n_row = (1 + d) * element.n_dofs();
        let mode = |mode: usize| {
            let mut sums = vec![0.0; n_row];
            for (row, at) in factor.iter().zip(&at_nodes).skip(mode) {
                sums.iter_mut().zip(at).for_each(|(sum, value)| *sum += row[mode] * value);
            }
            sums
        };
        let n_points = nodes.len();
        Ok(Self { n_points, has_unit_weights: true, entries: (0..n_points).flat_map(mode).collect() })
    }
}

/// Returns values and derivatives of the shape functions at points: `[1 + dimension][n_nodes]` of each.
fn rows(element: &Element, points: &[[f64; 3]]) -> Vec<Vec<f64>> {
    let table = element.tabulate(points);
    let row = |q: usize| {
        let slopes =
            (0..element.dimension()).flat_map(|axis| table.gradients(q).iter().map(move |g| g[axis]));
        table.values(q).iter().copied().chain(slopes).collect()
    };
    (0..points.len()).map(row).collect()
}

/// Returns the lower triangular factor of a symmetric positive definite matrix.
fn cholesky(mut a: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    for j in 0..a.len() {
        for i in j..a.len() {
            let sum: f64 = a[i][j] - (0..j).map(|k| a[i][k] * a[j][k]).sum::<f64>();
            a[i][j] = if i == j { sum.sqrt() } else { sum / a[j][j] };
        }
        a[j][j + 1..].fill(0.0);
    }
    a
}

#[cfg(test)]
mod tests {
    use femtile_mesh::CellKind;

    use super::*;

    #[test]
    fn modes_give_the_integrals_of_a_quadrature_rule() {
        for (kind, degree) in [CellKind::Triangle, CellKind::Tetrahedron]
            .into_iter()
            .flat_map(|kind| (1..=6).map(move |degree| (kind, degree)))
        {
            let element = Element::new(kind, degree).unwrap();
            let (n, d) = (element.n_dofs(), element.dimension());
            let points = Table::at_points(&element, &element.quadrature(2 * degree));
            let weights = &points.entries[points.n_points * (1 + d) * n..];
            for has_values in [false, true] {
                let modes = Table::in_modes(&element, has_values).unwrap();
                let entry = |table: &Table, q: usize, slot: usize, node: usize| {
                    table.entries[(q * (1 + d) + slot) * n + node]
                };
                for (slot, other) in (usize::from(!has_values)..=d).flat_map(|i| (i..=d).map(move |j| (i, j)))
                {
                    for (i, j) in [(0, 0), (0, n - 1), (n / 2, 1), (n - 1, n - 1)] {
                        let product = |table, q| entry(table, q, slot, i) * entry(table, q, other, j);
                        let wanted: f64 =
                            weights.iter().enumerate().map(|(q, weight)| weight * product(&points, q)).sum();
                        let found: f64 = (0..modes.n_points).map(|q| product(&modes, q)).sum();
                        let error = (found - wanted).abs();
                        assert!(error < 1e-12, "{kind:?} of degree {degree}, {slot}, {other}: {error:e}");
                    }
                }
            }
        }
    }
}
