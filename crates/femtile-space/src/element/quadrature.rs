use femtile_element::quadrature::{gauss_legendre, simplex};

/// A quadrature rule on a reference cell or facet.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceRule {
    /// Points in reference coordinates, zero along axes that the cell lacks.
    pub points: Vec<[f64; 3]>,
    /// Weights, positive; their sum is the measure of the reference cell.
    pub weights: Vec<f64>,
}

impl ReferenceRule {
    /// Creates the rule of a degree on the simplex or cube of dimension `d`.
    pub(crate) fn new(is_simplex: bool, d: usize, degree: usize) -> Self {
        if is_simplex { Self::on_simplex(d, degree) } else { Self::on_cube(d, degree / 2 + 1) }
    }

    fn on_simplex(d: usize, degree: usize) -> Self {
        let rule = simplex(d, degree);
        let measure = 1.0 / (1..=d).product::<usize>() as f64;
        Self {
            points: rule.points.iter().map(|[_, reference @ ..]| *reference).collect(),
            weights: rule.weights.iter().map(|weight| weight * measure).collect(),
        }
    }

    /// Returns the Gauss rule with `n` points along each axis, the first axis fastest.
    fn on_cube(d: usize, n: usize) -> Self {
        let (ticks, shares) = gauss_legendre(n);
        let index = |q: usize, axis: usize| q / n.pow(axis as u32) % n;
        let coordinate = |q: usize, axis: usize| if axis < d { ticks[index(q, axis)] } else { 0.0 };
        let n_q = n.pow(d as u32);
        Self {
            points: (0..n_q).map(|q| std::array::from_fn(|axis| coordinate(q, axis))).collect(),
            weights: (0..n_q).map(|q| (0..d).map(|axis| shares[index(q, axis)]).product()).collect(),
        }
    }

    /// Returns the number of points.
    pub fn n_q(&self) -> usize {
        self.weights.len()
    }
}
