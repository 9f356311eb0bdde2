use femtile_device::DeviceError;
use femtile_linalg::LinalgError;

/// Errors of time stepping.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TimeError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A linear solve failed.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// A setting is out of range or conflicts with another.
    #[error("{field}: {message}")]
    Setting {
        /// The setting.
        field: &'static str,
        /// The reason and the valid choices.
        message: String,
    },
    /// A coefficient is not finite, or the diffusion tensor is indefinite.
    #[error("{field} at ({}, {}, {}) is {value}: {message}", point[0], point[1], point[2])]
    Coefficient {
        /// The coefficient.
        field: &'static str,
        /// The point.
        point: [f64; 3],
        /// Its value there.
        value: f64,
        /// The requirement.
        message: &'static str,
    },
    /// A tridiagonal system of an implicit stage has no solution.
    #[error(
        "the implicit stage along axis {axis} met a zero pivot at node {node:?} in step {step}: reaction or convection \
         dominate diffusion there; use shorter steps or a finer grid"
    )]
    Singular {
        /// The axis, 0 for x.
        axis: usize,
        /// The node, by its numbers along x, y, z.
        node: [usize; 3],
        /// The step at which it was detected.
        step: usize,
    },
}

impl TimeError {
    /// Creates the error of a setting.
    pub(crate) fn setting(field: &'static str, message: impl Into<String>) -> Self {
        Self::Setting { field, message: message.into() }
    }
}
