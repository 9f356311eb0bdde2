//! Errors as a person sees them, and their exit codes.

use std::process::ExitCode;

use femtile::device::DeviceError;
use femtile::linalg::LinalgError;
use femtile::linalg::sparse::matrix_market::MatrixMarketError;
use femtile::mesh::MeshError;
use femtile::mesh::check::CheckError;
use femtile_bench::BenchError;
use femtile_case::CaseError;
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteDiagnostic, NamedSource, Report};

use crate::arrays::ArrayError;
use crate::output::{escape, say};

/// Exit code of bad input.
pub const BAD_INPUT: u8 = 2;
/// Exit code of device trouble.
pub const DEVICE: u8 = 3;
/// Exit code of a run that the user stopped.
pub const INTERRUPTED: u8 = 130;

/// Why the program ends without a result.
pub struct Failure {
    report: Report,
    code: u8,
}

impl Failure {
    /// A failure that a message alone describes.
    pub fn message(message: impl Into<String>) -> Self {
        Self { report: Report::new(diagnostic(&message.into())), code: BAD_INPUT }
    }

    /// Prints what went wrong and gives the exit code.
    pub fn report(self) -> ExitCode {
        let theme = if std::io::IsTerminal::is_terminal(&std::io::stderr()) {
            GraphicalTheme::unicode()
        } else {
            GraphicalTheme::unicode_nocolor()
        };
        let mut text = String::new();
        let handler = GraphicalReportHandler::new_themed(theme).with_width(100);
        if handler.render_report(&mut text, self.report.as_ref()).is_err() {
            text = self.report.to_string();
        }
        say(&format!("{}\n", text.trim_end()));
        ExitCode::from(self.code)
    }
}

/// A message whose control characters no terminal obeys.
fn diagnostic(message: &str) -> MietteDiagnostic {
    MietteDiagnostic::new(escape(message))
}

impl From<CaseError> for Failure {
    fn from(error: CaseError) -> Self {
        let code = match &error {
            CaseError::Interrupted { .. } => INTERRUPTED,
            error if error.is_device_trouble() => DEVICE,
            _ => BAD_INPUT,
        };
        let report = match error {
            CaseError::Input { path, text, key, span: Some(span), message, .. } => {
                let label = LabeledSpan::new_with_span(None, span);
                let key = key.map(|key| format!("{key}: ")).unwrap_or_default();
                let diagnostic = diagnostic(&format!("{key}{message}")).with_label(label);
                let path = escape(&path.to_string_lossy()).into_owned();
                Report::new(diagnostic).with_source_code(NamedSource::new(path, escape(&text).into_owned()))
            }
            other => Report::new(diagnostic(&other.to_string())),
        };
        Self { report, code }
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

impl From<LinalgError> for Failure {
    fn from(error: LinalgError) -> Self {
        match error {
            LinalgError::Device(error) => error.into(),
            other => Self::message(other.to_string()),
        }
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        match error {
            BenchError::Device(error) => error.into(),
            BenchError::Linalg(error) => error.into(),
            error @ BenchError::Product { .. } => Self { code: DEVICE, ..Self::message(error.to_string()) },
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
