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

/// What a Matrix Market file holds.
#[derive(Debug)]
pub struct MatrixMarket<T: Scalar> {
    /// The whole matrix: both triangles of a symmetric one.
    pub matrix: Csr<T, Reference>,
    /// What the file says of its values.
    pub field: Field,
    /// What the file says of its triangles.
    pub symmetry: Symmetry,
    /// The comments below the banner, without their `%`: the first 256 KiB of them.
    pub comments: Vec<String>,
    /// How many entries of the file were added to an earlier one of the same place.
    pub n_duplicates: usize,
    /// What a user should know of how the file was read.
    pub notes: Vec<String>,
}
