//! Runs scripts of other libraries in the first Python that has what they import.

use std::io::Write;
use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;

/// Runs a script that prints JSON; tries the Python named in `FEMTILE_PYTHON`, `python3` and `/usr/bin/python3`.
///
/// # Errors
/// The last message of each Python when none succeeds.
pub fn ask<R: DeserializeOwned>(
    script: &str,
    arguments: &[String],
    environment: &[(&str, String)],
) -> Result<R, String> {
    let mut reasons = Vec::new();
    let named = std::env::var("FEMTILE_PYTHON").ok();
    for python in named.as_deref().into_iter().chain(["python3", "/usr/bin/python3"]) {
        match run(python, script, arguments, environment) {
            Ok(output) => return Ok(output),
            Err(reason) => reasons.push(reason),
        }
    }
    Err(reasons.join("; "))
}

fn run<R: DeserializeOwned>(
    python: &str,
    script: &str,
    arguments: &[String],
    environment: &[(&str, String)],
) -> Result<R, String> {
    let mut command = Command::new(python);
    command.arg("-").args(arguments).envs(environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{python}: {error}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(script.as_bytes()).map_err(|error| format!("{python}: {error}"))?;
    }
    let output = child.wait_with_output().map_err(|error| format!("{python}: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{python}: {}", said.lines().last().unwrap_or("no message").trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("{python}: {error}"))
}
