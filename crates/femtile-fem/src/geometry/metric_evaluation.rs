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
    /// Computed at every point from the corners of a cell; for trilinear cells, on GPUs also bilinear ones, and coefficients
    /// constant by cell, on GPUs also scalar ones stored at all points.
    Trilinear,
    /// Computed at every point from 27 points of a cell; for cells of order at most two and coefficients constant by
    /// cell.
    Triquadratic,
    /// Computed at every point from all geometry points of a cell, of any order; for coefficients constant by cell.
    Isoparametric,
    /// The inverse Jacobian and its determinant stored at all points, ten numbers; for coefficients constant by cell.
    Inverse,
    /// Stored at all points, six or seven numbers.
    Stored,
    /// As `Stored`, in single precision beside arithmetic in double precision, on GPUs: entries of the operator are rounded
    /// to $6 \cdot 10^{-8}$ of their size, and so is the solution in the energy norm.
    StoredSingle,
}

impl MetricEvaluation {
    /// All evaluations.
    pub const ALL: [Self; 7] = [
        Self::Constant,
        Self::Trilinear,
        Self::Triquadratic,
        Self::Isoparametric,
        Self::Inverse,
        Self::Stored,
        Self::StoredSingle,
    ];

    /// Returns its name on the command line and in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Trilinear => "trilinear",
            Self::Triquadratic => "triquadratic",
            Self::Isoparametric => "isoparametric",
            Self::Inverse => "inverse",
            Self::Stored => "stored",
            Self::StoredSingle => "stored-single",
        }
    }
}
