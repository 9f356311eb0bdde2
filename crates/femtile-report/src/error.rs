use femtile_mesh::MeshError;
use thiserror::Error;

/// Errors of surfaces and pictures.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReportError {
    /// Cells that do not fit to their points.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// A field with another number of values than points.
    #[error("{n_values} values for {n_points} points: give one number for each point")]
    Length {
        /// Number of values.
        n_values: usize,
        /// Number of points.
        n_points: usize,
    },
    /// Nothing to draw.
    #[error("there is nothing to draw: {0}")]
    Empty(&'static str),
}
