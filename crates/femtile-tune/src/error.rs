use femtile_device::DeviceError;
use femtile_linalg::LinalgError;
use femtile_mesh::MeshError;

/// Errors of a survey and of the cache of its results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// An option is out of its range.
    #[error("{field}: {message}")]
    Setting {
        /// The option.
        field: &'static str,
        /// The reason and the valid choices.
        message: String,
    },
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Linear algebra failed.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// The cache file cannot be written.
    #[error(transparent)]
    Write(#[from] MeshError),
    /// The product in a format is wrong.
    #[error("{format} gives {found} in row {row} of the product where {expected} is right; please report it")]
    Product {
        /// The format with its parameters.
        format: String,
        /// The first wrong row, counted from 0.
        row: usize,
        /// The entry of the product.
        found: f64,
        /// The entry computed by plain loops over the rows.
        expected: f64,
    },
    /// A file operation failed.
    #[error("{action}: {source}")]
    File {
        /// The operation.
        action: &'static str,
        /// The error of the operating system.
        source: std::io::Error,
    },
}
