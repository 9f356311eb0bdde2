use std::path::PathBuf;

use femtile_linalg::LinalgError;

/// An error of a Matrix Market file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MatrixMarketError {
    /// The file could not be opened, read or written.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// `read` or `write`.
        action: &'static str,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The content breaks the rules of the format.
    #[error("{}: line {line}: {message}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Line number, counted from 1.
        line: usize,
        /// The problem and its remedy.
        message: String,
    },
    /// The file is sound but holds something that Femtile does not handle.
    #[error("{}: line {line}: {what} are not supported; {advice}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Line number, counted from 1.
        line: usize,
        /// Name of the unsupported feature.
        what: &'static str,
        /// The remedy.
        advice: &'static str,
    },
    /// The matrix cannot be written as asked.
    #[error("{}: cannot write: {message}", path.display())]
    Matrix {
        /// The file.
        path: PathBuf,
        /// Which entry stands against it and what to do.
        message: String,
    },
    /// The matrix could not be made.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
}
