use std::fmt;
use std::path::PathBuf;

/// A place in a file: a line of text or a byte of binary data.
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

/// Errors of reading, generating, checking and writing a mesh.
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
        /// Error of the operating system.
        #[source]
        source: std::io::Error,
    },
    /// The content of a file breaks the rules of its format.
    #[error("{}: {place}{message}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// The place in the file.
        place: Place,
        /// The fault and its remedy.
        message: String,
    },
    /// The file is valid but contains unsupported data.
    #[error("{}: {place}{what} is not supported; {advice}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The place in the file.
        place: Place,
        /// Name of the unsupported item.
        what: String,
        /// The remedy.
        advice: String,
    },
    /// Numbers that cannot form a mesh: an index out of range, a coordinate that is not finite, no cells.
    #[error("{field}: {message}")]
    Invalid {
        /// The part of the mesh or the argument.
        field: &'static str,
        /// The fault and its place.
        message: String,
    },
    /// The caller interrupted the work.
    #[error("the work on the mesh was interrupted")]
    Interrupted,
}
