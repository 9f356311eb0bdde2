//! Other libraries, run by scripts in the first Python that supports them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use femtile::device::{Buffer, Device, DeviceError};
use femtile::linalg::sparse::{Csr, Offsets};
use serde::de::DeserializeOwned;

use crate::BenchError;

/// Writes a system as little-endian numbers: rows and non-zeros (u64), offsets and columns (u32), values and right
/// side (f64).
pub fn write_system<D: Device>(a: &Csr<f64, D>, b: &Buffer<f64, D>, file: &Path) -> Result<(), BenchError> {
    let write = || -> std::io::Result<()> {
        let other = |error: DeviceError| std::io::Error::other(error.to_string());
        let Offsets::Narrow(offsets) = a.offsets() else {
            return Err(std::io::Error::other("the scripts of peers read 32-bit offsets only"));
        };
        let mut out = std::io::BufWriter::new(std::fs::File::create(file)?);
        for count in [a.n_rows() as u64, a.n_nonzeros() as u64] {
            out.write_all(&count.to_le_bytes())?;
        }
        out.write_all(bytemuck::cast_slice(&offsets.to_host().map_err(other)?))?;
        out.write_all(bytemuck::cast_slice(&a.columns().to_host().map_err(other)?))?;
        out.write_all(bytemuck::cast_slice(&a.values().to_host().map_err(other)?))?;
        out.write_all(bytemuck::cast_slice(&b.to_host().map_err(other)?))?;
        out.flush()
    };
    write().map_err(|source| BenchError::File { what: "matrix for the peers", source })
}

/// Runs a script, which prints JSON; returns the messages of all Pythons if none could.
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
