//! Whole runs of `femtile solve`, from the case file to the files of results, as a user waits for them.
//!
//! Bytes are those of the files read and written; the bound is the rate at which as many bytes are written to the same folder
//! (that of temporary files, `TMPDIR`). Each record has the medians of all stages, the time in no stage (`outside`), the share
//! of the iterations, and on a GPU the time of the first run, which compiles the kernels.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use femtile::DeviceChoice;
use femtile::device::{Cpu, cuda};
use femtile::mesh::io;
use serde_json::Value;

use crate::Samples;
use crate::problems::kuhn_box;
use crate::problems::whole::{WholeCase, cases, side_of_files};
use crate::{BenchError, Options, Record, Work};

/// Unknowns of the largest case, about.
const MOST: usize = 20_000_000;
/// Bytes of the file whose writing is the bound.
const FILE_BYTES: usize = 256 << 20;

pub(super) fn run(options: &Options) -> Result<Vec<Record>, BenchError> {
    let failed = |what| move |source| BenchError::File { what, source };
    let folder = tempfile::tempdir().map_err(failed("temporary folder"))?;
    let most = options.unknowns.unwrap_or(MOST);
    let bound = rate_of_writing(folder.path())?;
    let runner = Runner { program: program()?, folder: folder.path(), options, bound };
    let devices: Vec<String> = match options.device {
        DeviceChoice::Cpu => vec!["cpu".into()],
        DeviceChoice::Cuda(ordinal) => vec![format!("cuda:{ordinal}")],
        DeviceChoice::Auto if cuda::gpus().is_ok() => vec!["cpu".into(), "cuda".into()],
        DeviceChoice::Auto => vec!["cpu".into()],
    };
    let mut records = Vec::new();
    for case in cases(most) {
        let path = folder.path().join("case.toml");
        let mesh = mesh_of(&case, folder.path(), side_of_files(most))?;
        let text = format!("[mesh]\n{mesh}\n{}", case.rest);
        std::fs::write(&path, text).map_err(failed("case file"))?;
        for device in &devices {
            records.push(runner.record(&case, &path, device)?);
        }
    }
    Ok(records)
}

/// Returns the program `femtile` beside this one.
fn program() -> Result<PathBuf, BenchError> {
    let own = std::env::current_exe();
    let own = own.map_err(|source| BenchError::File { what: "path of this program", source })?;
    let program = own.with_file_name("femtile").with_extension(std::env::consts::EXE_EXTENSION);
    if program.is_file() {
        return Ok(program);
    }
    let message =
        "whole runs need the program `femtile` beside this one: `cargo build --release` builds both";
    Err(BenchError::Setting { field: "whole", message: message.into() })
}

/// Returns the keys of the mesh of a case; writes the file that it is read from.
fn mesh_of(case: &WholeCase, folder: &Path, side: usize) -> Result<String, BenchError> {
    let ending = match &case.mesh {
        Ok(keys) => return Ok(keys.clone()),
        Err(ending) => ending,
    };
    let path = folder.join(format!("box.{ending}"));
    let mesh = kuhn_box::mesh(side + 1)?;
    match *ending {
        "msh" => io::write_binary(&path, &mesh)?,
        _ => io::write(&path, &mesh)?,
    }
    Ok(format!("file = \"box.{ending}\""))
}

/// Returns the rate at which a file is written to a folder, in 10⁹ bytes a second.
fn rate_of_writing(folder: &Path) -> Result<f64, BenchError> {
    let path = folder.join("zeros");
    let (block, mut samples) = (vec![0u8; 1 << 20], Samples::default());
    let write = || {
        let mut file = std::fs::File::create(&path)?;
        (0..FILE_BYTES / block.len()).try_for_each(|_| file.write_all(&block))
    };
    for _ in 0..3 {
        samples.time(write).map_err(|source| BenchError::File { what: "a file of zeros", source })?;
    }
    let _ = std::fs::remove_file(path);
    Ok(1e-9 * FILE_BYTES as f64 / samples.min())
}

/// Runs the program.
struct Runner<'a> {
    program: PathBuf,
    folder: &'a Path,
    options: &'a Options,
    /// The rate of writing, 10⁹ bytes a second.
    bound: f64,
}

/// The report of one run, with its wall time.
struct Run {
    seconds: f64,
    report: Value,
}

impl Run {
    fn stages(&self) -> BTreeMap<String, f64> {
        let stages = self.report["timings_s"].as_object().into_iter().flatten();
        stages.filter_map(|(stage, seconds)| Some((stage.clone(), seconds.as_f64()?))).collect()
    }

    fn in_stages(&self) -> f64 {
        self.stages().values().sum()
    }
}

impl Runner<'_> {
    fn run(&self, case: &Path, device: &str, cache: &Path) -> Result<Run, BenchError> {
        let failed = |what| move |source| BenchError::File { what, source };
        let report = self.folder.join("summary.json");
        let mut command = Command::new(&self.program);
        command.arg("solve").arg(case).args(["--quiet", "--device", device]);
        command.arg("--output").arg(self.folder.join("out")).arg("--json").arg(&report);
        command.args(self.options.threads.iter().flat_map(|n| ["--threads".into(), n.to_string()]));
        command.env("FEMTILE_CACHE", cache).stdout(Stdio::null());
        let begun = Instant::now();
        let output = command.output().map_err(failed("femtile solve"))?;
        let seconds = begun.elapsed().as_secs_f64();
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr).trim().to_string();
            return Err(BenchError::Setting { field: "femtile solve", message });
        }
        let text = std::fs::read(&report).map_err(failed("report"))?;
        Ok(Run { seconds, report: serde_json::from_slice(&text).unwrap_or_default() })
    }

    fn record(&self, case: &WholeCase, path: &Path, device: &str) -> Result<Record, BenchError> {
        let cache = tempfile::tempdir_in(self.folder);
        let cache = cache.map_err(|source| BenchError::File { what: "folder of the cache", source })?;
        let first = self.run(path, device, cache.path())?;
        let (mut samples, mut runs) = (Samples::default(), Vec::new());
        for _ in 0..self.options.repeats(3) {
            let run = self.run(path, device, cache.path())?;
            samples.push(run.seconds);
            runs.push(run);
        }
        let read = case.mesh.as_ref().err().map(|ending| self.folder.join(format!("box.{ending}")));
        let bytes = bytes_of(&self.folder.join("out")) + read.map_or(0, |file| bytes_of(&file));
        let work = Work { bytes: bytes as f64, flops: 0.0 };
        let bound = ("writing a file", self.bound);
        let mut record = Record::against_bandwidth(case.name, &Cpu::new(1)?, &samples, work, bound);
        let report = &runs[0].report;
        record.device = report["device"].as_str().unwrap_or(device).into();
        let median = |of: &dyn Fn(&Run) -> f64| {
            let mut all: Vec<f64> = runs.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all[all.len() / 2]
        };
        for stage in runs[0].stages().keys() {
            record.set(&format!("seconds_{stage}"), median(&|run| run.stages()[stage]));
        }
        record.set("seconds_outside", median(&|run| run.seconds - run.in_stages()));
        record.set("seconds_first", first.seconds);
        let share = |run: &Run| run.stages().get("solve").map_or(0.0, |solve| solve / run.seconds);
        record.set("share_of_iterations", median(&share));
        record.set("iterations", report["solve"]["iterations"].clone());
        record.set("nodes", report["mesh"]["n_nodes"].clone());
        record.set("cells", report["mesh"]["n_cells"].clone());
        record.set("peak_bytes", report["memory_bytes"]["peak"].clone());
        Ok(record)
    }
}

/// Returns the bytes of a file, or of the files in a folder.
fn bytes_of(path: &Path) -> u64 {
    let own = std::fs::metadata(path).map_or(0, |found| if found.is_file() { found.len() } else { 0 });
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    own + entries.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum::<u64>()
}
