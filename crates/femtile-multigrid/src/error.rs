use femtile_device::DeviceError;
use femtile_linalg::LinalgError;

/// What can keep a hierarchy from being made or used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MultigridError {
    /// An operation on a device refused.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// Neither squares nor cubes.
    #[error("dimension {0}: boxes have 2 or 3")]
    Dimension(usize),
    /// Elements of a degree that is not offered.
    #[error("degree {degree}: elements of degree 1 to {highest} are offered")]
    Degree {
        /// The degree asked for.
        degree: usize,
        /// The highest there is.
        highest: usize,
    },
    /// A cell without extent.
    #[error("axis {axis}, cell {cell}: a width of {width}, which has to be positive and finite")]
    Width {
        /// Which axis, counted from 0.
        axis: usize,
        /// Which cell along it, counted from 0.
        cell: usize,
        /// Its width.
        width: f64,
    },
    /// Lists of the cells or corners of a grid that are too short or too long.
    #[error("{field}: {found} are given where the cells have {expected}")]
    Entries {
        /// Which list.
        field: &'static str,
        /// Entries needed.
        expected: usize,
        /// Entries given.
        found: usize,
    },
    /// No side on which values are given.
    #[error(
        "all sides are free, so that solutions are known up to a constant alone: give values on one of them"
    )]
    Free,
    /// A coefficient that conducts nothing, or is no number.
    #[error("cell {cell:?}: a coefficient of {coefficient}, which has to be positive and finite")]
    Coefficient {
        /// Which cell along each axis, counted from 0.
        cell: [usize; 3],
        /// Its coefficient.
        coefficient: f64,
    },
    /// A cell that is turned inside out, or flat, somewhere.
    #[error(
        "cell {cell:?} is inverted: its corners have to follow each other along x, y and z, and its angles to be below 180°"
    )]
    Inverted {
        /// Which cell along each axis, counted from 0.
        cell: [usize; 3],
    },
    /// A smoother that is not offered for a grid.
    #[error(
        "points smooth on rectangular cells with a coefficient of one alone: choose vertex patches or Chebyshev's polynomial"
    )]
    Points,
    /// Cells of any shape, one of them along an axis, and no free side across it, which leaves no vertex with an unknown.
    #[error(
        "axis {axis} has one layer of cells, and they are no rectangles with a coefficient of one: choose two or more for \
         vertex patches, or Chebyshev's polynomial"
    )]
    Layer {
        /// Which axis, counted from 0.
        axis: usize,
    },
    /// A coarsest level that takes too much memory to solve exactly.
    #[error(
        "the {unknowns} unknowns of the coarsest level take {} MiB to solve exactly, and {} are allowed: choose a coarser one, \
         and more levels",
        bytes >> 20,
        most >> 20
    )]
    Direct {
        /// How many there are.
        unknowns: usize,
        /// What the factor would take.
        bytes: usize,
        /// What it may take.
        most: usize,
    },
    /// No node lies inside, or too many do to be solved for at once.
    #[error(
        "axis {axis} has {cells} cells on the coarsest level, which is solved exactly: choose {least} to {most}, \
         and more levels for finer grids"
    )]
    Coarsest {
        /// Which axis, counted from 0.
        axis: usize,
        /// Cells along it.
        cells: usize,
        /// The fewest there may be.
        least: usize,
        /// The most there may be.
        most: usize,
    },
    /// No level, or more unknowns than numbers of 32 bits count.
    #[error("{levels} levels: {message}")]
    Levels {
        /// How many were asked for.
        levels: usize,
        /// What is wrong and what to choose.
        message: String,
    },
    /// A vector of another length than the grid has nodes.
    #[error("{field}: {found} values where the grid has {expected} nodes, those on its boundary included")]
    Length {
        /// Which argument.
        field: &'static str,
        /// Values needed.
        expected: usize,
        /// Values given.
        found: usize,
    },
    /// A level whose operator is none of a positive definite form, or that its device cannot carry out.
    #[error("level {level}, which has {n_rows} rows: {source}")]
    Level {
        /// Which level, counted from the finest, 0.
        level: usize,
        /// Its rows.
        n_rows: usize,
        /// What is wrong.
        source: LinalgError,
    },
    /// A setting is out of its range.
    #[error("{field}: {message}")]
    Setting {
        /// Which setting.
        field: &'static str,
        /// What is wrong and what to choose.
        message: String,
    },
    /// A grid that there are no kernels for.
    #[error("not on a GPU: {message}")]
    Gpu {
        /// What is wrong and what to choose.
        message: String,
    },
}

impl From<DeviceError> for MultigridError {
    fn from(error: DeviceError) -> Self {
        Self::Linalg(error.into())
    }
}

/// Refuses vectors of the wrong length.
pub(crate) fn need(field: &'static str, expected: usize, found: usize) -> Result<(), MultigridError> {
    if expected == found { Ok(()) } else { Err(MultigridError::Length { field, expected, found }) }
}
