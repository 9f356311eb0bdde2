//! Where reports go: to a person, and as JSON to a file or to standard output.

use std::path::Path;

use femtile::mesh::io::write_atomically;
use serde::Serialize;

use crate::failure::Failure;
use crate::print;

/// Refuses a file whose folder is missing, before anything is computed.
pub fn check_folder(option: &str, file: &Path) -> Result<(), Failure> {
    match file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) if !folder.is_dir() => {
            Err(Failure::message(format!("{option}: there is no folder {}; make it first", folder.display())))
        }
        _ => Ok(()),
    }
}

/// Writes a report as JSON where `--json` says, and its text to standard output unless JSON goes there.
pub fn tell(json: Option<&Path>, quiet: bool, report: &impl Serialize, text: &str) -> Result<(), Failure> {
    let content = serde_json::to_string_pretty(report).map_err(|e| Failure::message(e.to_string()))?;
    let to_stdout = json.is_some_and(|path| path.as_os_str() == "-");
    if to_stdout {
        print(&format!("{content}\n"))?;
    } else if let Some(path) = json {
        write_atomically(path, |out| writeln!(out, "{content}"))?;
    }
    if to_stdout && !quiet {
        eprint!("{text}");
    } else if !quiet {
        print(text)?;
    }
    Ok(())
}
