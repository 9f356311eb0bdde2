//! The benchmarks of Femtile: each problem defined once, each record with its bound.
//!
//! The program `femtile-bench` prints what [`run`] returns; `femtile bench` runs it. `femtile-research` takes problems,
//! timings and peers from here.
#![forbid(unsafe_code)]

use std::io::Write;
use std::path::Path;

use femtile::mesh::io::write_atomically;

mod absent;
pub mod benchmarks;
pub mod dealii;
mod error;
mod failure;
pub mod iterations;
pub mod multigrid;
mod options;
pub mod problems;
pub mod python;
pub mod record;
pub mod scaling;
pub mod sparse;
mod stopwatch;
mod system_file;
mod timing;

pub use absent::Absent;
pub use error::BenchError;
pub use failure::Failure;
pub use options::Options;
pub use record::{Record, Work};
pub use stopwatch::Stopwatch;
pub use timing::Samples;

/// Reports on standard error what is left out, if it can be written.
fn skipped(what: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

/// Tells on standard error what is done, if it can be written.
fn told(what: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// Writes records to a file as JSON, which replaces it as a whole.
///
/// # Errors
/// [`BenchError::Mesh`] where the file cannot be written.
pub fn write_json(path: &Path, records: &[Record]) -> Result<(), BenchError> {
    Ok(write_atomically(path, |out| {
        serde_json::to_writer_pretty(&mut *out, records)?;
        writeln!(out)
    })?)
}

/// A benchmark that can be run by name.
#[derive(Debug, Clone, Copy)]
pub struct Benchmark {
    /// Its name on the command line.
    pub name: &'static str,
    /// The measured quantity, in one line.
    pub summary: &'static str,
    run: fn(&Options) -> Result<Vec<Record>, BenchError>,
}

/// All benchmarks, in the order in which they are listed.
pub fn list() -> Vec<Benchmark> {
    benchmarks::all()
}

/// Runs the benchmark called `name`.
///
/// # Errors
/// [`BenchError::Unknown`] with the existing names; else the error that stopped the benchmark.
pub fn run(name: &str, options: &Options) -> Result<Vec<Record>, BenchError> {
    let Some(benchmark) = list().into_iter().find(|benchmark| benchmark.name == name) else {
        let names: Vec<_> = list().iter().map(|benchmark| benchmark.name).collect();
        return Err(BenchError::Unknown { name: name.into(), names: names.join(", ") });
    };
    let mut records = (benchmark.run)(options)?;
    if let Some(commit) = &options.commit {
        for record in &mut records {
            record.parameters.insert("commit".into(), commit.clone().into());
        }
    }
    Ok(records)
}
