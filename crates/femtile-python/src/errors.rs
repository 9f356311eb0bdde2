//! Errors of the library as exceptions of the Python sources.
//!
//! Exceptions are classes of the Python sources, made from the error enums; they name the argument.

use femtile::amg::AmgError;
use femtile::device::DeviceError;
use femtile::linalg::LinalgError;
use femtile::mesh::MeshError;
use femtile::mesh::check::CheckError;
use femtile::solve::{Key, SolveError};
use femtile_case::CaseError;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

/// Creates the exception of a class of `femtile._errors`, about an argument where one is to blame.
pub fn exception(py: Python<'_>, class: &str, message: &str, argument: Option<&str>) -> PyErr {
    let made = py.import("femtile._errors").and_then(|module| module.getattr(class));
    match made.and_then(|class| class.call1((message, argument))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}

/// Creates the exception about the value of an argument, which its message begins with.
pub fn of_argument(py: Python<'_>, argument: &str, message: &str) -> PyErr {
    exception(py, "ArgumentError", &format!("{argument}: {message}"), Some(argument))
}

/// Creates the exception about a thread that the system refuses.
pub fn no_thread(py: Python<'_>, error: &std::io::Error) -> PyErr {
    exception(py, "DeviceError", &format!("cannot start a thread: {error}"), None)
}

/// An error of the library that has an exception.
pub trait Raise {
    /// Creates the exception.
    fn raise(self, py: Python<'_>) -> PyErr;
}

/// Names of arguments by the names that settings have in case files.
fn argument_of(setting: &str) -> &str {
    match setting {
        "tolerance" => "tol",
        "max_iterations" => "maxiter",
        "matrix" | "offsets" | "columns" | "values" => "A",
        "x" => "x0",
        "r" | "z" => "x",
        "stability" => "pivoting",
        other => other,
    }
}

impl Raise for SolveError {
    fn raise(self, py: Python<'_>) -> PyErr {
        if self.is_device_trouble() {
            return exception(py, "DeviceError", &self.to_string(), None);
        }
        match self {
            Self::Setting { path, message, .. } => match path.last() {
                Some(Key::Name(name)) => of_argument(py, argument_of(name), &message),
                _ => exception(py, "Error", &message, None),
            },
            Self::Linalg(error) => error.raise(py),
            Self::Amg(error) => error.raise(py),
            Self::NotDefinite { row, value } => LinalgError::Diagonal { row, value }.raise(py),
            Self::Interrupted { .. } => PyKeyboardInterrupt::new_err(self.to_string()),
            other => exception(py, "Error", &other.to_string(), None),
        }
    }
}

impl Raise for LinalgError {
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Device(error) => error.raise(py),
            Self::Length { field, expected, found } => {
                let message = format!("{found} entries where {expected} are needed");
                of_argument(py, argument_of(field), &message)
            }
            Self::Structure { field, row, message } => {
                of_argument(py, argument_of(field), &format!("row {row} {message}"))
            }
            Self::Setting { field, message } => of_argument(py, argument_of(field), &message),
            Self::Diagonal { row, value } => {
                let message = format!(
                    "A: the diagonal entry of row {row} is {value}, not positive: the matrix is not positive definite; \
                     femtile.gmres needs no definite matrix"
                );
                exception(py, "NotDefiniteError", &message, Some("A"))
            }
            other => exception(py, "Error", &other.to_string(), None),
        }
    }
}

impl Raise for AmgError {
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Linalg(error) => error.raise(py),
            Self::Setting { field, message } => of_argument(py, argument_of(field), &message),
            Self::Diagonal { .. } | Self::Indefinite { .. } => {
                let message = format!("A: {self}; femtile.gmres needs no definite matrix");
                exception(py, "NotDefiniteError", &message, Some("A"))
            }
            other => of_argument(py, "A", &other.to_string()),
        }
    }
}

impl Raise for DeviceError {
    fn raise(self, py: Python<'_>) -> PyErr {
        exception(py, "DeviceError", &self.to_string(), None)
    }
}

impl Raise for MeshError {
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Invalid { field, message } => of_argument(py, field, &message),
            Self::Interrupted => PyKeyboardInterrupt::new_err(self.to_string()),
            other => exception(py, "MeshError", &other.to_string(), None),
        }
    }
}

impl Raise for CheckError {
    fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Invalid(error) => error.raise(py),
            other => exception(py, "MeshError", &other.to_string(), Some("mesh")),
        }
    }
}

impl Raise for CaseError {
    fn raise(self, py: Python<'_>) -> PyErr {
        if self.is_device_trouble() {
            return exception(py, "DeviceError", &self.to_string(), None);
        }
        match &self {
            Self::Interrupted { .. } => PyKeyboardInterrupt::new_err(self.to_string()),
            Self::Input { key, .. } => {
                exception(py, "CaseError", &self.to_string(), Some(key.as_deref().unwrap_or("case")))
            }
            _ => exception(py, "CaseError", &self.to_string(), None),
        }
    }
}
