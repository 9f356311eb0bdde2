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
    /// The description of a model is wrong.
    #[error("{model}:{line}:{column}: {message}")]
    Model {
        /// The file, or the name of the model.
        model: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The reason and the valid choices.
        message: String,
    },
    /// A variable of the membrane is not finite.
    #[error(
        "{variable} = {value} at node {node}: shorten the time step, or check stimulus and conductivity there"
    )]
    NotFinite {
        /// The voltage or a state.
        variable: String,
        /// The node.
        node: usize,
        /// Its value.
        value: f64,
    },
}

impl CardiacError {
    /// Creates the error of a setting.
    pub(crate) fn setting(field: &'static str, message: impl Into<String>) -> Self {
        Self::Setting { field, message: message.into() }
    }
}
