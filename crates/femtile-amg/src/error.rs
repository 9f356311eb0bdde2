use femtile_device::DeviceError;
use femtile_linalg::LinalgError;

/// What a matrix may be to blame for, before or while a hierarchy is set up.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AmgError {
    /// The device or an operation on it refused.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// The matrix is not square.
    #[error(
        "the matrix has {n_rows} rows and {n_cols} columns: multigrid needs as many of one as of the other"
    )]
    NotSquare {
        /// Rows.
        n_rows: usize,
        /// Columns.
        n_cols: usize,
    },
    /// A row has no entry on the diagonal, or none that is positive.
    #[error(
        "row {row}: the diagonal entry is {value}, where multigrid for positive definite matrices needs a positive one; \
         check the signs of the coefficients, and that no row is empty"
    )]
    Diagonal {
        /// The first bad row, counted from 0.
        row: usize,
        /// Its diagonal entry, 0 where there is none.
        value: f64,
    },
    /// Entries of a row are so small beside others that the levels do not hold their products.
    #[error(
        "row {row}: the diagonal entry is {ratio:e} times the largest entry of the matrix, too little for levels in \
         single precision; keep them in double precision"
    )]
    Range {
        /// The first such row, counted from 0.
        row: usize,
        /// Its diagonal entry over the largest entry.
        ratio: f64,
    },
    /// Single precision takes the matrix of the only level for singular in more directions than it is.
    #[error(
        "{n_lost} directions of the {n_rows} unknowns have too little energy for a level in single precision; keep it in \
         double precision"
    )]
    Resolution {
        /// Rows of the matrix.
        n_rows: usize,
        /// Directions that are taken for the null space and are none of it.
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
        "the matrix is not positive definite: on a level of {n_rows} rows, row {row} has the pivot {pivot:e}"
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
        /// Which setting.
        field: &'static str,
        /// What is wrong and what to choose.
        message: String,
    },
}

impl AmgError {
    /// Whether levels in double precision may do where those in single precision failed with this.
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
