use femtile::device::DeviceError;
use femtile::linalg::LinalgError;

/// Errors of cardiac simulations.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CardiacError {
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
}

impl CardiacError {
    /// Creates the error of a setting.
    pub(crate) fn setting(field: &'static str, message: impl Into<String>) -> Self {
        Self::Setting { field, message: message.into() }
    }
}
