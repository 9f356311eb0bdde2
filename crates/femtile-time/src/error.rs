use femtile_device::DeviceError;
use femtile_linalg::LinalgError;

/// What can go wrong between an equation on a box and its solution in time.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TimeError {
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A solve was refused.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// A setting is out of its range, or two do not go together.
    #[error("{field}: {message}")]
    Setting {
        /// Which setting.
        field: &'static str,
        /// What is wrong and what to choose.
        message: String,
    },
    /// The diffusion tensor is not positive semidefinite, or a coefficient is not a number.
    #[error("{field} at ({}, {}, {}) is {value}: {message}", point[0], point[1], point[2])]
    Coefficient {
        /// Which coefficient.
        field: &'static str,
        /// Where.
        point: [f64; 3],
        /// What it is there.
        value: f64,
        /// What it has to be.
        message: &'static str,
    },
    /// A tridiagonal system of an implicit stage has no solution.
    #[error(
        "the implicit stage along axis {axis} met a zero pivot at node {node:?} in step {step}: reaction or convection \
         outweigh diffusion there; take shorter steps or a finer grid"
    )]
    Singular {
        /// The axis, 0 for x.
        axis: usize,
        /// The node, by its numbers along x, y, z.
        node: [usize; 3],
        /// The step by which it was found.
        step: usize,
    },
}

impl TimeError {
    /// The error of a setting.
    pub(crate) fn setting(field: &'static str, message: impl Into<String>) -> Self {
        Self::Setting { field, message: message.into() }
    }
}
