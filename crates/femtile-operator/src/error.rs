use femtile_device::DeviceError;
use femtile_fem::FemError;
use femtile_form::FormError;
use femtile_linalg::LinalgError;
use femtile_space::SpaceError;

/// Errors of discrete operators.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OperatorError {
    /// A form and a space that do not fit each other.
    #[error("{0}")]
    Mismatch(String),
    /// A vector of another length than the number of unknowns.
    #[error("{field} has {found} entries; the space has {expected} unknowns")]
    Length {
        /// Which vector.
        field: &'static str,
        /// Its length.
        found: usize,
        /// Number of unknowns.
        expected: usize,
    },
    /// A boundary facet that does not exist.
    #[error("there is no facet {facet}: the boundary has {n_facets} facets")]
    NoSuchFacet {
        /// The facet.
        facet: u32,
        /// Number of boundary facets.
        n_facets: usize,
    },
    /// An error of a form or a coefficient.
    #[error(transparent)]
    Form(#[from] FormError),
    /// An error of a space or its geometry.
    #[error(transparent)]
    Space(#[from] SpaceError),
    /// An error of a device.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// An error of a matrix-free operator.
    #[error(transparent)]
    Fem(#[from] FemError),
    /// An error of a matrix or vector.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
}
