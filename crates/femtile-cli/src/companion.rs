//! Commands of other programs of this project, which are no part of this one.

use std::ffi::OsString;
use std::io::{Error, ErrorKind};
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::failure::Failure;

/// A program beside this one or on the PATH.
#[derive(Debug, Clone, Copy)]
pub struct Companion {
    /// The command that runs it.
    pub command: &'static str,
    pub program: &'static str,
    /// The argument before those that are passed on.
    first: Option<&'static str>,
}

/// Runs benchmarks.
pub const BENCH: Companion = Companion { command: "bench", program: "femtile-bench", first: None };
/// Times products with a sparse matrix in several formats.
pub const SPMV: Companion = Companion { command: "spmv", program: "femtile-bench", first: Some("products") };
/// Searches for the fastest format of a sparse matrix.
pub const TUNE: Companion = Companion { command: "tune", program: "femtile-bench", first: Some("tune") };
/// Regenerates figures of papers.
pub const REPRODUCE: Companion = Companion { command: "reproduce", program: "femtile-research", first: None };

impl Companion {
    /// Runs the program with these arguments in place of this one, where the system can, and returns its exit code.
    pub fn run(self, arguments: &[OsString]) -> Result<ExitCode, Failure> {
        let mut last = Error::from(ErrorKind::NotFound);
        for program in self.beside().into_iter().chain([PathBuf::from(self.program)]) {
            match replace(Command::new(program).args(self.first).args(arguments)) {
                Ok(code) => return Ok(code),
                Err(error) if error.kind() == ErrorKind::NotFound => last = error,
                Err(error) => {
                    last = error;
                    break;
                }
            }
        }
        let Self { command, program, .. } = self;
        Err(Failure::message(if last.kind() == ErrorKind::NotFound {
            format!(
                "`femtile {command}` needs the program {program}, which is neither beside femtile nor on the PATH; in \
                 the folder of Femtile's sources `cargo build --release -p {program}` builds it"
            )
        } else {
            format!("`femtile {command}` cannot run {program}: {last}")
        }))
    }

    /// Returns the program in the folder of this one.
    fn beside(self) -> Option<PathBuf> {
        let path = std::env::current_exe().ok()?.with_file_name(self.program);
        Some(path.with_extension(std::env::consts::EXE_EXTENSION))
    }
}

/// Becomes the program, so that signals reach it; returns only where that fails.
#[cfg(unix)]
fn replace(command: &mut Command) -> Result<ExitCode, Error> {
    Err(std::os::unix::process::CommandExt::exec(command))
}

#[cfg(not(unix))]
fn replace(command: &mut Command) -> Result<ExitCode, Error> {
    let code = command.status()?.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
