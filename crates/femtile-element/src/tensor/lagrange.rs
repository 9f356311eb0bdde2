use crate::quadrature::gauss_lobatto;

/// The highest degree of [`Lagrange::gauss_lobatto`].
pub const MAX_DEGREE: usize = 20;

/// Lagrange polynomials in one coordinate: each is one at its own node and zero at the others,
/// $$ \ell_i(x) = \prod_{j \ne i} \frac{x - x_j}{x_i - x_j}. $$
#[derive(Debug, Clone, PartialEq)]
pub struct Lagrange {
    nodes: Vec<f64>,
}

/// Values or slopes of polynomials at points: one entry per point and polynomial.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Number of points, the rows.
    pub n_points: usize,
    /// Number of polynomials, the columns.
    pub n_shapes: usize,
    /// `[n_points][n_shapes]`.
    pub entries: Vec<f64>,
}

impl Table {
    /// Returns the entries of all polynomials at one point.
    pub fn row(&self, point: usize) -> &[f64] {
        &self.entries[point * self.n_shapes..(point + 1) * self.n_shapes]
    }

    /// Returns the Gram matrix by a rule with these points: $\sum_q w_q s_{qi} s_{qj}$.
    ///
    /// # Panics
    /// Unless there is one weight per point.
    #[must_use]
    pub fn gram(&self, weights: &[f64]) -> Self {
        assert_eq!(weights.len(), self.n_points, "weights of the points of the table");
        let n = self.n_shapes;
        let product = |i: usize, j: usize| {
            let terms =
                weights.iter().enumerate().map(|(point, w)| w * self.row(point)[i] * self.row(point)[j]);
            terms.sum::<f64>()
        };
        Self { n_points: n, n_shapes: n, entries: (0..n * n).map(|at| product(at / n, at % n)).collect() }
    }

    /// Returns the transposed table.
    #[must_use]
    pub fn transpose(&self) -> Self {
        let entry = |i: usize| self.entries[i % self.n_points * self.n_shapes + i / self.n_points];
        let entries = (0..self.entries.len()).map(entry).collect();
        Self { n_points: self.n_shapes, n_shapes: self.n_points, entries }
    }
}

impl Lagrange {
    /// Creates the polynomials for distinct nodes.
    ///
    /// # Panics
    /// If two nodes are equal, or there are none.
    pub fn new(nodes: Vec<f64>) -> Self {
        let differs = |i: usize| nodes[..i].iter().all(|&other| other != nodes[i]);
        assert!(!nodes.is_empty() && (0..nodes.len()).all(differs), "nodes have to differ: {nodes:?}");
        Self { nodes }
    }

    /// Creates the polynomials of a degree on [0, 1] with Gauss–Lobatto points as nodes.
    ///
    /// # Panics
    /// If the degree is 0 or exceeds [`MAX_DEGREE`].
    pub fn gauss_lobatto(degree: usize) -> Self {
        assert!((1..=MAX_DEGREE).contains(&degree), "no polynomials of degree {degree}: 1 to {MAX_DEGREE}");
        Self { nodes: gauss_lobatto(degree + 1).0 }
    }

    /// Returns the nodes.
    pub fn nodes(&self) -> &[f64] {
        &self.nodes
    }

    /// Returns the values of all polynomials at points.
    pub fn values(&self, points: &[f64]) -> Table {
        self.table(points, |i, x| self.product(x, i, i))
    }

    /// Returns the slopes of all polynomials at points.
    pub fn slopes(&self, points: &[f64]) -> Table {
        let inverse = |i: usize, k: usize| 1.0 / (self.nodes[i] - self.nodes[k]);
        self.table(points, |i, x| {
            let others = (0..self.nodes.len()).filter(|&k| k != i);
            others.map(|k| inverse(i, k) * self.product(x, i, k)).sum()
        })
    }

    /// Returns $\prod_{j \ne i, k} (x - x_j) / (x_i - x_j)$.
    fn product(&self, x: f64, i: usize, k: usize) -> f64 {
        let others = self.nodes.iter().enumerate().filter(|(j, _)| *j != i && *j != k);
        others.map(|(_, node)| (x - node) / (self.nodes[i] - node)).product()
    }

    fn table(&self, points: &[f64], entry: impl Fn(usize, f64) -> f64) -> Table {
        let n_shapes = self.nodes.len();
        let entry = &entry;
        let entries = points.iter().flat_map(|&x| (0..n_shapes).map(move |i| entry(i, x))).collect();
        Table { n_points: points.len(), n_shapes, entries }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quadrature::gauss_legendre;

    /// Interpolates values at the nodes.
    fn interpolated(table: &Table, values: &[f64]) -> Vec<f64> {
        let row = |point| table.row(point).iter().zip(values).map(|(a, b)| a * b).sum();
        (0..table.n_points).map(row).collect()
    }

    #[test]
    fn polynomials_and_their_slopes_are_reproduced() {
        for degree in 1..=12 {
            let shapes = Lagrange::gauss_lobatto(degree);
            let points = [gauss_legendre(degree + 2).0, shapes.nodes().to_vec()].concat();
            for power in 0..=degree as i32 {
                let values: Vec<f64> = shapes.nodes().iter().map(|x| x.powi(power)).collect();
                let found = interpolated(&shapes.values(&points), &values);
                let slopes = interpolated(&shapes.slopes(&points), &values);
                for ((x, found), slope) in points.iter().zip(found).zip(slopes) {
                    assert!((found - x.powi(power)).abs() < 1e-13, "degree {degree}, power {power}");
                    let expected = if power == 0 { 0.0 } else { f64::from(power) * x.powi(power - 1) };
                    assert!((slope - expected).abs() < 1e-11, "degree {degree}, power {power}: {slope}");
                }
            }
        }
    }

    #[test]
    fn shapes_are_one_at_their_nodes_and_mirror_images() {
        let shapes = Lagrange::gauss_lobatto(5);
        let table = shapes.values(shapes.nodes());
        assert!((0..36).all(|i| table.entries[i] == if i / 6 == i % 6 { 1.0 } else { 0.0 }));
        let (points, _) = gauss_legendre(7);
        let (values, slopes) = (shapes.values(&points), shapes.slopes(&points));
        for i in 0..42 {
            assert!((values.entries[i] - values.entries[41 - i]).abs() < 1e-14);
            assert!((slopes.entries[i] + slopes.entries[41 - i]).abs() < 1e-12);
        }
        assert_eq!(values.transpose().transpose(), values);
        assert_eq!(values.transpose().row(2)[4], values.row(4)[2]);
    }

    #[test]
    #[should_panic(expected = "nodes have to differ")]
    fn nodes_that_meet_are_refused() {
        Lagrange::new(vec![0.0, 1.0, 0.0]);
    }
}
