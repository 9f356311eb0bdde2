use std::process::ExitCode;

use femtile::device::DeviceError;
use femtile::device::cpu::default_threads;
use femtile::linalg::LinalgError;
use femtile::mesh::MeshError;
use femtile_terminal::{TerminalError, escape, say};

use crate::BenchError;

/// Exit code of bad input.
const BAD_INPUT: u8 = 2;
/// Exit code of device trouble.
const DEVICE: u8 = 3;

/// Reasons for which a program of this package ends without a result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// A benchmark or a reproduction failed.
    #[error(transparent)]
    Bench(#[from] BenchError),
    /// Standard output is closed.
    #[error(transparent)]
    Terminal(#[from] TerminalError),
    /// A file was not written.
    #[error(transparent)]
    Mesh(#[from] MeshError),
    /// The operating system refused.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// An argument names nothing that there is.
    #[error("{0}")]
    Argument(String),
}

impl Failure {
    /// Runs a program; prints its error and returns its exit code.
    pub fn exit_code(run: impl FnOnce() -> Result<ExitCode, Self>) -> ExitCode {
        // Threads start with whatever uses them first: their number is settled before.
        let settled = default_threads().map(drop).map_err(Self::from);
        settled.and_then(|()| run()).unwrap_or_else(|failure| {
            say(&escape(&format!("error: {failure}\n")));
            ExitCode::from(failure.code())
        })
    }

    fn code(&self) -> u8 {
        match self {
            Self::Bench(
                BenchError::Device(_)
                | BenchError::Linalg(LinalgError::Device(_))
                | BenchError::Product { .. },
            ) => DEVICE,
            _ => BAD_INPUT,
        }
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        BenchError::from(error).into()
    }
}
