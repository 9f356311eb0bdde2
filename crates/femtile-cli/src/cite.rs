use std::path::Path;
use std::process::ExitCode;

use serde_json::Value;

use crate::failure::Failure;
use femtile_terminal::print;

/// `femtile cite`.
pub fn run(file: &Path) -> Result<ExitCode, Failure> {
    let wrong = |reason: String| Failure::message(format!("{}: {reason}", file.display()));
    let text = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    let report: Value = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
    let no_report = || wrong("it has no `citations`: give the report.json of a solve".into());
    let listed = report.get("citations").and_then(Value::as_array).ok_or_else(no_report)?;
    let mut keys: Vec<&str> = listed.iter().filter_map(Value::as_str).collect();
    keys.sort_unstable();
    keys.dedup();
    let entries = keys.into_iter().map(|key| {
        let entry = femtile_report::bibtex(key);
        entry
            .map(|entry| format!("{entry}\n"))
            .ok_or_else(|| wrong(format!("`{key}` has no entry in this version")))
    });
    Ok(print(&entries.collect::<Result<Vec<_>, _>>()?.join("\n"))?)
}
