//! Errors as a person sees them, and their exit codes.

use std::ops::Range;
use std::process::ExitCode;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use femtile::device::DeviceError;
use femtile::linalg::LinalgError;
use femtile::linalg::sparse::matrix_market::MatrixMarketError;
use femtile::mesh::MeshError;
use femtile::mesh::check::CheckError;
use femtile_cardiac::CardiacError;
use femtile_case::CaseError;

use crate::arrays::ArrayError;
use femtile_terminal::{TerminalError, escape, say};

/// Exit code of bad input.
pub const BAD_INPUT: u8 = 2;
/// Exit code of device errors.
pub const DEVICE: u8 = 3;
/// Exit code of a run interrupted by the user.
pub const INTERRUPTED: u8 = 130;

/// An error that ends the program.
pub struct Failure {
    message: String,
    place: Option<Place>,
    code: u8,
}

/// A range of bytes in an input file.
struct Place {
    path: String,
    text: String,
    span: Range<usize>,
}

impl Failure {
    /// Creates a failure of bad input with a message.
    pub fn message(message: impl Into<String>) -> Self {
        Self { message: escape(&message.into()).into_owned(), place: None, code: BAD_INPUT }
    }

    /// Says which rank it is the failure of.
    #[must_use]
    pub fn of_rank(self, rank: usize) -> Self {
        Self { message: format!("rank {rank}: {}", self.message), ..self }
    }

    /// Returns the exit code.
    pub fn code(&self) -> u8 {
        self.code
    }

    /// Prints the error and returns the exit code.
    pub fn report(self) -> ExitCode {
        let is_terminal = std::io::IsTerminal::is_terminal(&std::io::stderr());
        let renderer = if is_terminal { Renderer::styled() } else { Renderer::plain() };
        let title = Level::ERROR.primary_title(&self.message);
        let text = match &self.place {
            Some(Place { path, text, span }) => {
                let annotation = AnnotationKind::Primary.span(span.clone());
                renderer.render(&[title.element(Snippet::source(text).path(path).annotation(annotation))])
            }
            None => renderer.render(&[Group::with_title(title)]),
        };
        say(&format!("{}\n", text.trim_end()));
        ExitCode::from(self.code)
    }
}

impl From<CaseError> for Failure {
    fn from(error: CaseError) -> Self {
        let code = match &error {
            CaseError::Interrupted { .. } => INTERRUPTED,
            error if error.is_device_trouble() => DEVICE,
            _ => BAD_INPUT,
        };
        match error {
            CaseError::Input { path, text, key, span: Some(span), message, .. } => {
                let key = key.map(|key| format!("{key}: ")).unwrap_or_default();
                let path = escape(&path.to_string_lossy()).into_owned();
                // Escaping keeps the number of bytes, so the span holds.
                let place = Place { path, text: escape(&text).into_owned(), span };
                Self { place: Some(place), code, ..Self::message(format!("{key}{message}")) }
            }
            other => Self { code, ..Self::message(other.to_string()) },
        }
    }
}

impl From<TerminalError> for Failure {
    fn from(error: TerminalError) -> Self {
        Self::message(error.to_string())
    }
}

impl From<MeshError> for Failure {
    fn from(error: MeshError) -> Self {
        Self::message(error.to_string())
    }
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Self {
        let accept =
            error.finding().map(|finding| format!("; --accept {} takes it as it is", finding.name()));
        Self::message(format!("the mesh cannot be used: {error}{}", accept.unwrap_or_default()))
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        Self { code: DEVICE, ..Self::message(error.to_string()) }
    }
}

impl From<CardiacError> for Failure {
    fn from(error: CardiacError) -> Self {
        let code = if error.is_device_trouble() { DEVICE } else { BAD_INPUT };
        Self { code, ..Self::message(error.to_string()) }
    }
}

impl From<LinalgError> for Failure {
    fn from(error: LinalgError) -> Self {
        match error {
            LinalgError::Device(error) => error.into(),
            other => Self::message(other.to_string()),
        }
    }
}

impl From<MatrixMarketError> for Failure {
    fn from(error: MatrixMarketError) -> Self {
        match error {
            MatrixMarketError::Linalg(error) => error.into(),
            other => Self::message(other.to_string()),
        }
    }
}

impl From<ArrayError> for Failure {
    fn from(error: ArrayError) -> Self {
        Self::message(error.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::message(error.to_string())
    }
}
