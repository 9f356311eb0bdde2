use femtile_device::DeviceError;

/// An error of linear algebra; a solve that does not converge is an outcome, not an error.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LinalgError {
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Arrays of one operation have different lengths.
    #[error("{field}: {found} entries where {expected} are needed")]
    Length {
        /// Which argument.
        field: &'static str,
        /// Entries needed.
        expected: usize,
        /// Entries given.
        found: usize,
    },
    /// The arrays do not form a CSR matrix.
    #[error("{field}: row {row} {message}")]
    Structure {
        /// Which array.
        field: &'static str,
        /// The first bad row.
        row: usize,
        /// The defect found there.
        message: String,
    },
    /// An entry lies outside its matrix.
    #[error("row {row}, column {column}: the entry {value} lies outside a matrix of {n_rows} × {n_cols}")]
    Entry {
        /// Its row, counted from 0.
        row: usize,
        /// Its column, counted from 0.
        column: usize,
        /// Its value.
        value: f64,
        /// Rows of the matrix.
        n_rows: usize,
        /// Columns of the matrix.
        n_cols: usize,
    },
    /// A diagonal entry cannot be inverted by a method for positive definite matrices.
    #[error(
        "the diagonal entry of row {row} is {value}, not positive: the matrix is not positive definite; \
         check the orientation of the cells around node {row} and the sign of σ and λ"
    )]
    Diagonal {
        /// The first bad row.
        row: usize,
        /// Its diagonal entry.
        value: f64,
    },
    /// A hook without a body for GPUs was given to an operator on one.
    #[error("the hook runs on a CPU only: give it a body for CUDA, or apply the operator on a CPU")]
    HostHook,
    /// Another rank has failed, or this one could not reach it.
    #[error("rank {rank}: {message}")]
    Rank {
        /// The rank that failed.
        rank: usize,
        /// Its own words.
        message: String,
    },
    /// A setting is out of its range.
    #[error("{field}: {message}")]
    Setting {
        /// Which setting.
        field: &'static str,
        /// The problem and the setting to choose.
        message: String,
    },
}

/// Checks the length of an array.
///
/// # Errors
/// [`LinalgError::Length`], with the name of the argument.
pub fn need(field: &'static str, expected: usize, found: usize) -> Result<(), LinalgError> {
    if expected == found { Ok(()) } else { Err(LinalgError::Length { field, expected, found }) }
}

/// Checks the lengths of `y` and `x` for a product $y = A x$ with a matrix of `n_rows` × `n_cols`.
///
/// # Errors
/// [`LinalgError::Length`] with the name of the vector.
pub fn need_product([n_rows, n_cols]: [usize; 2], y: usize, x: usize) -> Result<(), LinalgError> {
    need("y", n_rows, y)?;
    need("x", n_cols, x)
}
