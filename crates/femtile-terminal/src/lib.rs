//! Output of the programs: text to the terminal, JSON to a file or to standard output; and the cache folder.

#![forbid(unsafe_code)]

mod cache;
mod processor;

use std::borrow::Cow;
use std::io::{ErrorKind, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use femtile_mesh::MeshError;
use femtile_mesh::io::write_atomically;
use serde::Serialize;

pub use cache::cache_folder;
pub use processor::processor;

/// Errors of output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TerminalError {
    /// Writing to standard output failed.
    #[error("cannot write to standard output: {0}")]
    Print(std::io::Error),
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] MeshError),
    /// A folder has the name of a file to write.
    #[error("{option}: {} is a folder; add the name of a file", path.display())]
    Folder {
        /// The option that names the file.
        option: String,
        /// The folder.
        path: PathBuf,
    },
    /// The folder of a file to write is missing.
    #[error("{option}: there is no folder {}; make it first", folder.display())]
    NoFolder {
        /// The option that names the file.
        option: String,
        /// The folder.
        folder: PathBuf,
    },
    /// A report is not JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
}

/// Writes text to standard output; a closed pipe is not an error.
///
/// # Errors
/// See [`TerminalError`].
pub fn print(text: &str) -> Result<ExitCode, TerminalError> {
    match write(&mut stdout().lock(), &escape(text)) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(TerminalError::Print(error)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Writes JSON to standard output; a closed pipe is an error.
///
/// # Errors
/// See [`TerminalError`].
pub fn print_data(json: &str) -> Result<ExitCode, TerminalError> {
    write(&mut stdout().lock(), &escape_json(json)).map_err(TerminalError::Print)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes text to standard error; failures are ignored.
pub fn say(text: &str) {
    let _ = write(&mut stderr().lock(), text);
}

fn write(out: &mut dyn Write, text: &str) -> std::io::Result<()> {
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Replaces control characters, which a terminal would interpret, by visible ones; keeps the number of bytes.
pub fn escape(text: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let shown = |c: char| if is_hidden(c) { "?".repeat(c.len_utf8()) } else { c.into() };
    Cow::Owned(text.chars().map(shown).collect())
}

/// Escapes the control characters in JSON strings as `\u009b`, so that no terminal interprets them; those below U+0020
/// are escaped already.
fn escape_json(json: &str) -> Cow<'_, str> {
    let is_hidden = |c: char| c.is_control() && c != '\n';
    if !json.contains(is_hidden) {
        return Cow::Borrowed(json);
    }
    let shown = |c: char| if is_hidden(c) { format!("\\u{:04x}", u32::from(c)) } else { c.into() };
    Cow::Owned(json.chars().map(shown).collect())
}

/// Returns `true` for `-`, which is standard output.
pub fn is_stdout(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Checks, before anything is computed, that a file can be written: its folder exists, and it is not itself a folder.
///
/// # Errors
/// See [`TerminalError`].
pub fn check_target(option: &str, file: &Path) -> Result<(), TerminalError> {
    if is_stdout(file) {
        return Ok(());
    }
    if file.is_dir() {
        return Err(TerminalError::Folder { option: option.into(), path: file.into() });
    }
    match file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) if !folder.is_dir() => {
            Err(TerminalError::NoFolder { option: option.into(), folder: folder.into() })
        }
        _ => Ok(()),
    }
}

/// Writes JSON to the file of `--json`, and text to standard output unless JSON goes there.
///
/// # Errors
/// See [`TerminalError`].
pub fn tell(json: Option<&Path>, quiet: bool, content: &str, text: &str) -> Result<(), TerminalError> {
    let to_stdout = json.is_some_and(is_stdout);
    if to_stdout {
        print_data(&format!("{content}\n"))?;
    } else if let Some(path) = json {
        write_atomically(path, |out| writeln!(out, "{content}"))?;
    }
    if to_stdout && !quiet {
        say(&escape(text));
    } else if !quiet {
        print(text)?;
    }
    Ok(())
}

/// Returns a report as JSON text.
///
/// # Errors
/// See [`TerminalError`].
pub fn to_json(report: &impl Serialize) -> Result<String, TerminalError> {
    Ok(serde_json::to_string_pretty(report)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_shown_and_places_in_the_text_stay() {
        let text = "a\u{1b}[31mb\u{7}\r\n\tc\u{9b}é";
        assert_eq!(escape(text), "a?[31mb??\n\tc??é");
        assert_eq!(escape(text).len(), text.len());
        assert!(matches!(escape("plain\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn json_without_control_characters_means_the_same() {
        let value = serde_json::json!({ "a\u{9b}": ["b\u{1b}\u{7f}\n", "é"] });
        let text = format!("{value:#}");
        let shown = escape_json(&text);
        assert!(text.contains('\u{9b}') && !shown.contains(|c: char| c.is_control() && c != '\n'), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
