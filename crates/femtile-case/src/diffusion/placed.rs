use femtile_solve::Key;
use femtile_time::TimeError;

use crate::{Case, CaseError};

/// Returns the error of the library with its place in the case file, where it has one.
pub(super) fn placed(case: &Case, error: TimeError) -> CaseError {
    let path: Vec<Key> = match &error {
        TimeError::Setting { field, .. } => match *field {
            "nodes" | "lower" | "upper" => vec!["mesh".into(), "generate".into(), (*field).into()],
            "scheme" | "start" | "end" | "steps" | "rannacher_steps" => vec!["time".into(), (*field).into()],
            "sides" => vec!["boundary".into()],
            other => vec!["equation".into(), other.into()],
        },
        TimeError::Coefficient { field, .. } => vec!["equation".into(), (*field).into()],
        _ => return error.into(),
    };
    let text = error.to_string();
    let message = match &error {
        TimeError::Setting { message, .. } => message,
        _ => &text,
    };
    case.wrong(&path, message.as_str())
}
