use std::ops::Range;

use femtile_amg::AmgError;
use femtile_device::DeviceError;
use femtile_fem::FemError;
use femtile_form::FormError;
use femtile_linalg::LinalgError;
use femtile_mesh::MeshError;
use femtile_mesh::check::CheckError;
use femtile_operator::OperatorError;
use femtile_space::SpaceError;
use femtile_time::TimeError;

use crate::Stage;
use crate::setting::{Key, path_text};

/// A reason why a problem cannot be solved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SolveError {
    /// A setting is wrong, or does not go with the mesh or with other settings.
    #[error("{}: {message}", path_text(path))]
    Setting {
        /// The setting, with the keys that it has in a case file: `solver.device`, `boundary[1].dirichlet`.
        path: Vec<Key>,
        /// Bytes of its text that the message is about, if it is an expression.
        within: Option<Range<usize>>,
        /// The problem and the remedy.
        message: String,
    },
    /// The mesh could not be read, made or written.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The mesh cannot be solved on.
    #[error("the mesh cannot be used: {0}")]
    Check(#[from] CheckError),
    /// The form could not be discretised.
    #[error(transparent)]
    Fem(#[from] FemError),
    /// The solver refused its input.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// A matrix has a diagonal entry that is not positive.
    #[error(
        "the diagonal entry of row {row} is {value}, not positive: the matrix is not positive definite; gmres needs no \
         definite matrix, and cg without preconditioner (none) no diagonal"
    )]
    NotDefinite {
        /// The first such row, counted from 0.
        row: usize,
        /// Its diagonal entry, 0 if absent.
        value: f64,
    },
    /// Multigrid could not be set up.
    #[error("multigrid cannot be set up: {0}")]
    Amg(#[from] AmgError),
    /// The device is not there or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The integration in time refused its settings.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// A discrete form refused its input.
    #[error(transparent)]
    Operator(OperatorError),
    /// Data of a problem in time cannot be evaluated.
    #[error("at t = {time}: {source}")]
    AtTime {
        /// The time.
        time: f64,
        /// The reason.
        source: FemError,
    },
    /// The user has asked for a stop before there was a solution.
    #[error("interrupted while {}", stage.label())]
    Interrupted {
        /// The action that failed.
        stage: Stage,
    },
}

impl SolveError {
    /// Returns an error about a setting.
    pub fn setting(path: &[Key], message: impl Into<String>) -> Self {
        Self::Setting { path: path.to_vec(), within: None, message: message.into() }
    }

    /// Returns an error about a setting of `[solver]`.
    pub(crate) fn solver(key: &str, message: impl Into<String>) -> Self {
        Self::setting(&["solver".into(), key.into()], message)
    }

    /// Returns whether the device, and not the input, is to blame.
    pub fn is_device_trouble(&self) -> bool {
        matches!(
            self,
            Self::Device(_)
                | Self::Time(TimeError::Device(_) | TimeError::Linalg(LinalgError::Device(_)))
                | Self::Linalg(LinalgError::Device(_))
                | Self::Amg(AmgError::Linalg(LinalgError::Device(_)))
                | Self::Fem(FemError::Device(_) | FemError::Linalg(LinalgError::Device(_)))
        )
    }
}

/// The error of a space is one of `femtile-fem` here, as it is when an operator is made.
impl From<SpaceError> for SolveError {
    fn from(error: SpaceError) -> Self {
        Self::Fem(error.into())
    }
}

impl From<FormError> for SolveError {
    fn from(error: FormError) -> Self {
        Self::Fem(error.into())
    }
}

impl From<OperatorError> for SolveError {
    fn from(error: OperatorError) -> Self {
        match error {
            OperatorError::Form(error) => error.into(),
            OperatorError::Space(error) => error.into(),
            OperatorError::Linalg(error) => error.into(),
            OperatorError::Device(error) => error.into(),
            OperatorError::Fem(error) => error.into(),
            other => Self::Operator(other),
        }
    }
}
