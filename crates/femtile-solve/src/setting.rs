//! The way to a setting, as messages name it and as case files nest it.

use std::fmt;

/// One step on the way to a setting: a name or a position in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// A name.
    Name(String),
    /// A position in a list.
    Index(usize),
}

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        Self::Name(name.into())
    }
}

impl From<usize> for Key {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, ".{name}"),
            Self::Index(index) => write!(f, "[{index}]"),
        }
    }
}

/// Returns the steps as text, such as `boundary[1].dirichlet`.
pub fn path_text(path: &[Key]) -> String {
    let text: String = path.iter().map(ToString::to_string).collect();
    text.trim_start_matches('.').into()
}

/// Returns the steps of `path` and one more.
pub fn below(path: &[Key], key: impl Into<Key>) -> Vec<Key> {
    path.iter().cloned().chain([key.into()]).collect()
}
