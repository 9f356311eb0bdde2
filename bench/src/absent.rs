use serde::Serialize;

/// A peer that was not measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Absent {
    /// Its name.
    pub peer: &'static str,
    /// The reason.
    pub reason: String,
    /// The command that installs it.
    pub install: &'static str,
}
