use femtile::SolveError;
use femtile::device::DeviceError;
use femtile::fem::FemError;
use femtile::linalg::LinalgError;
use femtile::mesh::MeshError;

/// Errors of cardiac simulations.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CardiacError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A linear solve failed.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// The equation could not be discretized.
    #[error(transparent)]
    Fem(#[from] FemError),
    /// An operator or a preconditioner could not be set up.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// A file could not be read or written.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// A setting is out of range or conflicts with another.
    #[error("{field}: {message}")]
    Setting {
        /// The setting.
        field: &'static str,
        /// The reason and the valid choices.
        message: String,
    },
    /// An entry of a list is out of range or does not fit the mesh.
    #[error("{list} {number}: {message}")]
    Entry {
        /// The list: `stimulus` or `tissue`.
        list: &'static str,
        /// The number of the entry, from 0.
        number: usize,
        /// The setting of the entry.
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

    /// Returns whether the device, and not the input, is to blame.
    pub fn is_device_trouble(&self) -> bool {
        match self {
            Self::Device(_) | Self::Linalg(LinalgError::Device(_)) => true,
            Self::Fem(FemError::Device(_) | FemError::Linalg(LinalgError::Device(_))) => true,
            Self::Solve(error) => error.is_device_trouble(),
            _ => false,
        }
    }
}
