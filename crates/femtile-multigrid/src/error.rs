use femtile_device::DeviceError;
use femtile_linalg::LinalgError;

/// Errors of setting up or applying multigrid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MultigridError {
    /// An error of a device or of linear algebra.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// A dimension other than 2 or 3.
    #[error("dimension {0}: a box has 2 or 3 dimensions")]
    Dimension(usize),
    /// A degree out of range.
    #[error("degree {degree}: elements of degree 1 to {highest} are supported")]
    Degree {
        /// The requested degree.
        degree: usize,
        /// The highest supported degree.
        highest: usize,
    },
    /// A cell width that is not positive and finite.
    #[error("axis {axis}, cell {cell}: the width {width} must be positive and finite")]
    Width {
        /// The axis, from 0.
        axis: usize,
        /// The cell along it, from 0.
        cell: usize,
        /// Its width.
        width: f64,
    },
    /// A list of the wrong length.
    #[error("{field}: {found} entries, {expected} are required")]
    Entries {
        /// The list.
        field: &'static str,
        /// Entries required.
        expected: usize,
        /// Entries given.
        found: usize,
    },
    /// No Dirichlet side.
    #[error(
        "all sides are free, so the solution is unique only up to a constant: give values on one of them"
    )]
    Free,
    /// A coefficient that is not positive and finite.
    #[error("cell {cell:?}: the coefficient {coefficient} must be positive and finite")]
    Coefficient {
        /// The cell, by its index along each axis from 0.
        cell: [usize; 3],
        /// Its coefficient.
        coefficient: f64,
    },
    /// A cell with a Jacobian determinant that is not positive.
    #[error("cell {cell:?} is inverted: its corners must be in the order x, y, z and its angles below 180°")]
    Inverted {
        /// The cell, by its index along each axis from 0.
        cell: [usize; 3],
    },
    /// One layer of mapped cells between Dirichlet sides: no vertex has an unknown.
    #[error(
        "axis {axis} has one layer of cells, and they are not rectangles with coefficient one: choose two or more layers \
         for vertex patches, or Chebyshev"
    )]
    Layer {
        /// The axis, from 0.
        axis: usize,
    },
    /// A coarsest level too large for its direct solver.
    #[error(
        "the direct solver of the coarsest level takes {} MiB for {unknowns} unknowns, {} MiB are allowed: choose a \
         coarser one and more levels",
        bytes >> 20,
        most >> 20
    )]
    Direct {
        /// Unknowns of the coarsest level.
        unknowns: usize,
        /// Bytes of the factor.
        bytes: usize,
        /// Largest number of bytes allowed.
        most: usize,
    },
    /// A coarsest level with no interior node, or too many.
    #[error(
        "axis {axis} has {cells} cells on the coarsest level, which is solved directly: choose {least} to {most}, \
         and more levels for finer grids"
    )]
    Coarsest {
        /// The axis, from 0.
        axis: usize,
        /// Cells along it.
        cells: usize,
        /// Fewest cells allowed.
        least: usize,
        /// Most cells allowed.
        most: usize,
    },
    /// No level, or more nodes than 32-bit indices allow.
    #[error("{levels} levels: {message}")]
    Levels {
        /// The requested number of levels.
        levels: usize,
        /// The reason and a remedy.
        message: String,
    },
    /// A vector whose length is not the number of nodes.
    #[error("{field}: {found} values for a grid of {expected} nodes, boundary included")]
    Length {
        /// The argument.
        field: &'static str,
        /// Values required.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// A level whose operator is not positive definite, or an error of its device.
    #[error("level {level}, which has {n_rows} rows: {source}")]
    Level {
        /// The level; 0 is the finest.
        level: usize,
        /// Rows of the operator.
        n_rows: usize,
        /// The reason.
        source: LinalgError,
    },
    /// A setting is out of its range.
    #[error("{field}: {message}")]
    Setting {
        /// The setting.
        field: &'static str,
        /// The reason and a remedy.
        message: String,
    },
    /// A grid or setting that GPU kernels do not support.
    #[error("not supported on a GPU: {message}")]
    Gpu {
        /// The reason and a remedy.
        message: String,
    },
}

impl From<DeviceError> for MultigridError {
    fn from(error: DeviceError) -> Self {
        Self::Linalg(error.into())
    }
}

/// Checks the length of a vector.
pub(crate) fn need(field: &'static str, expected: usize, found: usize) -> Result<(), MultigridError> {
    if expected == found { Ok(()) } else { Err(MultigridError::Length { field, expected, found }) }
}
