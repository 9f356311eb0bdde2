//! Evaluation of cell metrics.

/// Evaluation of cell metrics by a matrix-free operator.
///
/// # Source
/// `[kronbichler2022]`, section 2.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetricEvaluation {
    /// Stored per cell, seven numbers, four on quadrilaterals; for cells with a constant metric, and on GPUs also beside scalar
    /// coefficients stored at all points.
    Constant,
    /// Computed at every point from the polynomial map of a hexahedron, of the lowest order that represents it; for coefficients
    /// constant by cell. On GPUs for straight hexahedra and quadrilaterals, also with scalar coefficients stored at all points.
    Computed,
    /// Stored at all points, six or seven numbers.
    Stored,
}

impl MetricEvaluation {
    /// All evaluations.
    pub const ALL: [Self; 3] = [Self::Constant, Self::Computed, Self::Stored];

    /// Returns its name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Computed => "computed",
            Self::Stored => "stored",
        }
    }
}
