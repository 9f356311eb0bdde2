//! Places of the library's refusals in the case file.

use femtile_solve::SolveError;
use femtile_time::TimeError;

use crate::{Case, CaseError};

/// Gives an error about steps its place in the case file.
pub(crate) fn placed(case: &Case, error: SolveError) -> CaseError {
    match error {
        SolveError::Time(TimeError::Setting { field, message }) => {
            let key = match field {
                "shortest" => "shortest_step",
                "first" => "first_step",
                other => other,
            };
            case.wrong(&["time".into(), key.into()], message)
        }
        other => other.into(),
    }
}
