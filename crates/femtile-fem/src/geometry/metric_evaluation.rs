//! Ways to come by the metric of cells.

/// How an operator without a matrix comes by the metric of its cells.
///
/// # Source
/// `[kronbichler2022]`, section 2.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetricEvaluation {
    /// Seven numbers a cell, where it is the same at all points of it.
    Constant,
    /// Computed at every point from the eight corners of a cell, where cells are trilinear and coefficients are given by cell.
    Trilinear,
    /// The same from 27 points of a cell, where cells are triquadratic at most.
    Triquadratic,
    /// The same from all points of a cell that the mesh gives, which may have any order.
    Isoparametric,
    /// The inverse Jacobian and its determinant stored at all points, ten numbers, where coefficients are given by cell.
    Inverse,
    /// Stored at all points, six or seven numbers.
    Stored,
}

impl MetricEvaluation {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Constant,
        Self::Trilinear,
        Self::Triquadratic,
        Self::Isoparametric,
        Self::Inverse,
        Self::Stored,
    ];

    /// Its name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Trilinear => "trilinear",
            Self::Triquadratic => "triquadratic",
            Self::Isoparametric => "isoparametric",
            Self::Inverse => "inverse",
            Self::Stored => "stored",
        }
    }
}
