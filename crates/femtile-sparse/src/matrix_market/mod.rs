//! Matrix Market files: a banner, comments, counts, then an entry a line; plain or compressed with gzip.
//!
//! ```text
//! %%MatrixMarket matrix coordinate real symmetric
//! % the lower triangle of a matrix of 2 × 2
//! 2 2 3
//! 1 1 4.0
//! 2 1 -1.0
//! 2 2 4.0
//! ```
//!
//! No count of a file is trusted: memory grows with the bytes that have been read.

mod atomic;
mod error;
mod header;
mod lines;
mod read;
mod value;
mod write;

use femtile_device::{Reference, Scalar};

use super::Csr;
pub use error::MatrixMarketError;
pub use header::{Field, Symmetry};
pub use read::{ReadConfig, parse, read, read_with};
pub use write::{WriteConfig, write};

/// The content of a Matrix Market file.
#[derive(Debug)]
pub struct MatrixMarket<T: Scalar> {
    /// The whole matrix: both triangles of a symmetric one.
    pub matrix: Csr<T, Reference>,
    /// The kind of its values.
    pub field: Field,
    /// The symmetry of the matrix.
    pub symmetry: Symmetry,
    /// The comments below the banner, without their `%`: the first 256 KiB of them.
    pub comments: Vec<String>,
    /// Number of duplicate entries, each added to an earlier one.
    pub n_duplicates: usize,
    /// Notes for the user about the reading of the file.
    pub notes: Vec<String>,
}
