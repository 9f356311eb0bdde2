use std::fmt;
use std::path::PathBuf;

/// Where in a file something was found: a line of text or a byte of binary data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Line number, counted from 1.
    Line(usize),
    /// Byte offset, counted from 0.
    Byte(usize),
    /// The file as a whole.
    Whole,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}: "),
            Self::Byte(byte) => write!(f, "byte {byte}: "),
            Self::Whole => Ok(()),
        }
    }
}

/// What can go wrong with a mesh: reading, generating, checking, writing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MeshError {
    /// A file could not be opened, read or written.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// `read` or `write`.
        action: &'static str,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// The content of a file breaks the rules of its format.
    #[error("{}: {place}{message}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: Place,
        /// What is wrong and what to try.
        message: String,
    },
    /// The file is sound but holds something that Femtile does not handle.
    #[error("{}: {place}{what} is not supported; {advice}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: Place,
        /// What was met, by name.
        what: String,
        /// What to do instead.
        advice: String,
    },
    /// Numbers that cannot form a mesh: an index out of range, a coordinate that is not finite, no cells.
    #[error("{field}: {message}")]
    Invalid {
        /// Which part of the mesh or which argument.
        field: &'static str,
        /// What is wrong and where.
        message: String,
    },
    /// Whoever asked for a mesh wanted the work to end.
    #[error("the work on the mesh was interrupted")]
    Interrupted,
}
