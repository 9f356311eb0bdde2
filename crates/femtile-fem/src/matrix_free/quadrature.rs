use femtile_element::quadrature::{gauss_legendre, gauss_lobatto};

/// The rule of each axis by which cells are integrated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellRule {
    /// Gauss's rule with so many points more than the degree has nodes: p + 1 + `more`.
    Gauss {
        /// Points more than p + 1.
        more: usize,
    },
    /// The Gauss–Lobatto rule at the p + 1 nodes: a diagonal mass matrix, not exact on any cell.
    GaussLobatto,
}

impl Default for CellRule {
    fn default() -> Self {
        Self::Gauss { more: 0 }
    }
}

impl CellRule {
    /// Points on [0, 1] and their weights, for elements of a degree.
    pub fn rule(self, degree: usize) -> (Vec<f64>, Vec<f64>) {
        match self {
            Self::Gauss { more } => gauss_legendre(degree + 1 + more),
            Self::GaussLobatto => gauss_lobatto(degree + 1),
        }
    }
}
