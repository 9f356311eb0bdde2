//! The program `femtile-research` as `femtile` runs it.

mod reproduce;

use std::path::PathBuf;
use std::process::Command;

fn research() -> Command {
    Command::new(env!("CARGO_BIN_EXE_femtile-research"))
}

/// The root of the project.
fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
