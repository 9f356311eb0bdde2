use femtile_device::DeviceError;
use femtile_linalg::LinalgError;

/// An error of the setup of a hierarchy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AmgError {
    /// An error of the device or of an operation on it.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// The matrix is not square.
    #[error("the matrix has {n_rows} rows and {n_cols} columns: multigrid needs a square matrix")]
    NotSquare {
        /// Rows.
        n_rows: usize,
        /// Columns.
        n_cols: usize,
    },
    /// A row has no positive entry on the diagonal.
    #[error(
        "row {row}: the diagonal entry is {value}, where multigrid needs a positive one; \
         check the signs of the coefficients, and that no row is empty"
    )]
    Diagonal {
        /// The first bad row, counted from 0.
        row: usize,
        /// Its diagonal entry, 0 if absent.
        value: f64,
    },
    /// The diagonal entry of a row is so small that products of entries underflow in the precision of the levels.
    #[error(
        "row {row}: the diagonal entry is {ratio:e} times the largest entry of the matrix, too little for levels in \
         f32; choose f64"
    )]
    Range {
        /// The first such row, counted from 0.
        row: usize,
        /// Its diagonal entry over the largest entry.
        ratio: f64,
    },
    /// Vectors of little energy are lost in f32: the null space of a level is larger there, or bending of a thin body is lost to rounding.
    #[error(
        "{n_lost} directions of the {n_rows} unknowns have too little energy for a level in f32; choose f64"
    )]
    Resolution {
        /// Rows of the matrix.
        n_rows: usize,
        /// Rows or directions outside the null space whose energy f32 does not resolve.
        n_lost: usize,
    },
    /// An entry is not a finite number.
    #[error("row {row}, column {column}: the entry is {value}, not a finite number")]
    NotFinite {
        /// Its row, counted from 0.
        row: usize,
        /// Its column, counted from 0.
        column: usize,
        /// The entry.
        value: f64,
    },
    /// The matrix differs from its transpose.
    #[error(
        "row {row}, column {column}: the entry is {value}, its mirror image {mirror}: the matrix is not symmetric \
         (‖A − Aᵀ‖/‖A‖ = {asymmetry:.1e}), as multigrid with conjugate gradients needs; \
         eliminate given unknowns from rows and columns alike"
    )]
    NotSymmetric {
        /// The row of the first such entry, counted from 0.
        row: usize,
        /// Its column, counted from 0.
        column: usize,
        /// The entry.
        value: f64,
        /// The entry in its row for its column.
        mirror: f64,
        /// $\|A - A^\mathsf{T}\|_F / \|A\|_F$.
        asymmetry: f64,
    },
    /// The matrix of a coarser level has a pivot that is negative, or a diagonal entry that is not positive.
    #[error(
        "the matrix is {}: on a level of {n_rows} rows, row {row} has the pivot {pivot:e}",
        defect_of(.pivot)
    )]
    Indefinite {
        /// Rows of that level.
        n_rows: usize,
        /// The row of the pivot there.
        row: usize,
        /// The pivot, relative to a largest diagonal entry of one.
        pivot: f64,
    },
    /// A setting is out of its range.
    #[error("{field}: {message}")]
    Setting {
        /// The setting.
        field: &'static str,
        /// The problem and a valid choice.
        message: String,
    },
}

/// Smaller pivots are taken for zeros that rounding has changed.
const ROUNDED: f64 = 1e-8;

fn defect_of(pivot: &f64) -> &'static str {
    if pivot.abs() < ROUNDED {
        "singular, and rounding hides its null space"
    } else {
        "not positive definite"
    }
}

impl AmgError {
    /// Returns the error with entries of the original matrix instead of the scaled one. `scale` and the
    /// factors of rows and columns are those of the scaling.
    pub(crate) fn before_scaling(self, factors: &[f64], scale: f64) -> Self {
        match self {
            Self::NotSymmetric { row, column, value, mirror, asymmetry } => {
                let by = scale * factors[row] * factors[column];
                Self::NotSymmetric { row, column, value: value / by, mirror: mirror / by, asymmetry }
            }
            other => other,
        }
    }

    /// Returns whether a set-up in f64 may succeed after this error in f32.
    pub fn is_of_precision(&self) -> bool {
        matches!(
            self,
            Self::Range { .. }
                | Self::Resolution { .. }
                | Self::Indefinite { .. }
                | Self::Diagonal { .. }
                | Self::NotFinite { .. }
        )
    }
}

impl From<DeviceError> for AmgError {
    fn from(error: DeviceError) -> Self {
        Self::Linalg(error.into())
    }
}
