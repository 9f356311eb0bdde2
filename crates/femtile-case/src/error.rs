use std::ops::Range;
use std::path::PathBuf;

use femtile_amg::AmgError;
use femtile_cardiac::CardiacError;
use femtile_device::DeviceError;
use femtile_fem::FemError;
use femtile_linalg::LinalgError;
use femtile_mesh::MeshError;
use femtile_mesh::check::CheckError;
use femtile_report::ReportError;
use femtile_time::TimeError;

use femtile_solve::{Key, SolveError, Stage, path_text};

/// Errors of a case.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaseError {
    /// The case file, or a file that it needs, could not be read or written.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// `read`, `write` or the like.
        action: &'static str,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The case file is wrong at one place.
    #[error("{}{}: {message}", path.display(), key.as_ref().map(|key| format!(", {key}")).unwrap_or_default())]
    Input {
        /// The case file.
        path: PathBuf,
        /// Its text.
        text: String,
        /// The key, such as `boundary[1].dirichlet`.
        key: Option<String>,
        /// Bytes of the text that the message is about.
        span: Option<Range<usize>>,
        /// The reason and the remedy.
        message: String,
        /// The error of a library or the system behind it, if there is one.
        cause: Option<Box<CaseError>>,
    },
    /// A value that an option of the program puts into the case is wrong.
    #[error("{option}: {message}")]
    Option {
        /// The option with its value.
        option: String,
        /// The reason and the remedy.
        message: String,
        /// The error of a library or the system behind it, if there is one.
        cause: Option<Box<CaseError>>,
    },
    /// A setting is wrong; its place in the case file is not yet known.
    #[error("{}: {message}", path_text(path))]
    Setting {
        /// The keys that lead to it.
        path: Vec<Key>,
        /// Bytes of its text that the message is about, if it is an expression.
        within: Option<Range<usize>>,
        /// The reason and the remedy.
        message: String,
    },
    /// The mesh could not be read or made.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The mesh cannot be solved on.
    #[error("the mesh cannot be used: {0}")]
    Check(#[from] CheckError),
    /// The problem is not well posed or could not be assembled.
    #[error(transparent)]
    Fem(#[from] FemError),
    /// The solver refused.
    #[error(transparent)]
    Linalg(#[from] LinalgError),
    /// Multigrid could not be set up.
    #[error("multigrid cannot be set up: {0}")]
    Amg(#[from] AmgError),
    /// The equation in time could not be advanced.
    #[error(transparent)]
    Time(#[from] TimeError),
    /// The solution could not be drawn.
    #[error("the picture: {0}")]
    Report(#[from] ReportError),
    /// The device is not there or failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A simulation of the heart refused its input.
    #[error(transparent)]
    Cardiac(CardiacError),
    /// The problem could not be solved for another reason.
    #[error(transparent)]
    Other(SolveError),
    /// The user interrupted the run before it had results.
    #[error("interrupted while {}: nothing was written, earlier results are as they were", stage.label())]
    Interrupted {
        /// The interrupted stage.
        stage: Stage,
    },
}

impl CaseError {
    /// Creates an error of an option.
    pub(crate) fn option(option: &str, message: impl Into<String>) -> Self {
        Self::Option { option: option.into(), message: message.into(), cause: None }
    }

    /// Adds the cause.
    pub(crate) fn because_of(mut self, error: Self) -> Self {
        if let Self::Input { cause, .. } | Self::Option { cause, .. } = &mut self {
            *cause = Some(Box::new(error));
        }
        self
    }

    /// Returns `true` for errors of the device rather than the input.
    pub fn is_device_trouble(&self) -> bool {
        if let Self::Input { cause: Some(cause), .. } | Self::Option { cause: Some(cause), .. } = self {
            return cause.is_device_trouble();
        }
        matches!(
            self,
            Self::Device(_)
                | Self::Linalg(LinalgError::Device(_))
                | Self::Amg(AmgError::Linalg(LinalgError::Device(_)))
                | Self::Fem(FemError::Device(_) | FemError::Linalg(LinalgError::Device(_)))
                | Self::Time(TimeError::Device(_) | TimeError::Linalg(LinalgError::Device(_)))
        )
    }
}

impl From<SolveError> for CaseError {
    fn from(error: SolveError) -> Self {
        match error {
            SolveError::Setting { path, within, message } => Self::Setting { path, within, message },
            SolveError::Mesh(error) => Self::Mesh(error),
            SolveError::Check(error) => Self::Check(error),
            SolveError::Fem(error) => Self::Fem(error),
            SolveError::Linalg(error) => Self::Linalg(error),
            SolveError::Amg(error) => Self::Amg(error),
            SolveError::Device(error) => Self::Device(error),
            SolveError::Interrupted { stage } => Self::Interrupted { stage },
            other => Self::Other(other),
        }
    }
}
