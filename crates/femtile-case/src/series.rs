//! Files that a run in time writes as it goes: frames, traces, checkpoints.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use femtile_mesh::MeshError;
use femtile_mesh::io::vtu::WriteOptions;
use femtile_mesh::io::{pvd, write_atomically};
use femtile_time::implicit::CheckpointError;

use crate::file::Times;
use crate::plot::trace_plot;
use crate::report::FileReport;
use crate::{Case, CaseError};

/// The folder of frames.
const FRAMES: &str = "frames";
/// The frames by time.
const COLLECTION: &str = "solution.pvd";
/// The state of a run that goes on.
const CHECKPOINT: &str = "checkpoint.bin";
/// Traces by time, as a table and as a picture.
const TABLE: &str = "traces.csv";
const PICTURE: &str = "traces.svg";

/// A time at which something is written.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Moment {
    time: f64,
    /// The number of a frame.
    frame: Option<usize>,
    is_trace: bool,
}

/// Writes frames, traces and checkpoints of a run.
pub(crate) struct Series<'a> {
    case: &'a Case,
    folder: PathBuf,
    moments: Vec<Moment>,
    times: Vec<f64>,
    frames: Vec<(f64, String)>,
    table: Option<File>,
    /// The columns and rows of the table.
    names: Vec<String>,
    rows: Vec<(f64, Vec<f64>)>,
}

impl<'a> Series<'a> {
    /// Prepares the files, with a column of the table for each name; a run that goes on from `resumed` keeps what was written
    /// until then.
    pub fn new(case: &'a Case, names: Vec<String>, resumed: Option<f64>) -> Result<Self, CaseError> {
        let folder = case.file.output.directory.clone();
        let moments = moments(case);
        let times = moments.iter().map(|moment| moment.time).collect();
        let (table, frames, rows) = (None, Vec::new(), Vec::new());
        let mut series = Self { case, folder, moments, times, frames, table, names, rows };
        let io = |path: PathBuf| move |source| CaseError::Io { path, action: "write", source };
        if series.moments.iter().any(|moment| moment.frame.is_some()) {
            let frames = series.folder.join(FRAMES);
            std::fs::create_dir_all(&frames).map_err(io(frames.clone()))?;
        }
        let is_done = |moment: &&Moment| resumed.is_some_and(|time| moment.time < time);
        let earlier =
            series.moments.iter().filter(is_done).filter_map(|moment| Some((moment.time, moment.frame?)));
        let earlier: Vec<_> = earlier.map(|(time, number)| (time, frame_name(number))).collect();
        series.frames = earlier.into_iter().filter(|(_, name)| series.folder.join(name).exists()).collect();
        if series.moments.iter().any(|moment| moment.is_trace) {
            series.open_table(resumed)?;
        }
        Ok(series)
    }

    /// Returns the times at which something is written, ascending.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Opens the table of traces with the rows before the time from which the run goes on.
    fn open_table(&mut self, resumed: Option<f64>) -> Result<(), CaseError> {
        let path = self.folder.join(TABLE);
        let io = |source| CaseError::Io { path: path.clone(), action: "write", source };
        if let Some(begin) = resumed
            && let Ok(file) = File::open(&path)
        {
            for line in BufReader::new(file).lines().skip(1) {
                let line = line.map_err(io)?;
                let numbers: Option<Vec<f64>> = line.split(',').map(|text| text.parse().ok()).collect();
                if let Some((&time, values)) = numbers.as_deref().and_then(<[f64]>::split_first)
                    && time < begin
                    && values.len() == self.names.len()
                {
                    self.rows.push((time, values.to_vec()));
                }
            }
        }
        // As a whole, so that a run that is killed here leaves the rows of the one before.
        write_atomically(&path, |out| {
            writeln!(out, "t,{}", self.names.join(","))?;
            self.rows.iter().try_for_each(|(time, values)| write_row(out, *time, values))
        })?;
        self.table = Some(OpenOptions::new().append(true).open(&path).map_err(io)?);
        Ok(())
    }

    /// Writes what belongs to the moment with a number: `frame` writes a file for ParaView, `values` returns those of the
    /// table.
    ///
    /// # Errors
    /// Those of both, and of files that cannot be written.
    pub fn record<E: From<MeshError>>(
        &mut self,
        (moment, time): (usize, f64),
        frame: impl FnOnce(&Path, WriteOptions) -> Result<(), E>,
        values: impl FnOnce(&[String]) -> Result<Vec<f64>, E>,
    ) -> Result<(), E> {
        let Moment { frame: number, is_trace, .. } = self.moments[moment];
        if let Some(number) = number {
            let name = frame_name(number);
            let options =
                WriteOptions { compress: self.case.file.output.compress, ..WriteOptions::default() };
            frame(&self.folder.join(&name), options)?;
            self.frames.retain(|(_, known)| *known != name);
            self.frames.push((time, name));
            pvd::write(&self.folder.join(COLLECTION), &self.frames)?;
        }
        if is_trace {
            let values = values(&self.names)?;
            let path = self.folder.join(TABLE);
            let io = |source| MeshError::Io { path, action: "write", source };
            if let Some(table) = &mut self.table {
                write_row(table, time, &values).map_err(io)?;
            }
            self.rows.push((time, values));
        }
        Ok(())
    }

    /// Draws the traces and returns the files that were written, by name.
    pub fn finish(self) -> Result<BTreeMap<String, FileReport>, CaseError> {
        let mut names: Vec<String> = self.frames.iter().map(|(_, name)| name.clone()).collect();
        if !self.frames.is_empty() {
            names.push(COLLECTION.into());
        }
        if self.table.is_some() {
            let svg = trace_plot(&self.names, &self.rows);
            write_atomically(&self.folder.join(PICTURE), |out| out.write_all(svg.as_bytes()))?;
            names.extend([TABLE, PICTURE].map(String::from));
        }
        names.into_iter().map(|name| Ok((name.clone(), FileReport::of(&self.folder.join(&name))?))).collect()
    }
}

/// Returns the path of the checkpoint.
pub(crate) fn checkpoint_path(case: &Case) -> PathBuf {
    case.file.output.directory.join(CHECKPOINT)
}

/// Writes a checkpoint, which appears when it is complete.
///
/// # Errors
/// [`MeshError::Io`] with the path.
pub(crate) fn write_checkpoint(
    case: &Case,
    write: impl FnOnce(&mut dyn Write) -> Result<(), CheckpointError>,
) -> Result<(), MeshError> {
    let io = |error: CheckpointError| match error {
        CheckpointError::Io(error) => error,
        other => std::io::Error::other(other.to_string()),
    };
    write_atomically(&checkpoint_path(case), |out| write(out).map_err(io))
}

fn frame_name(number: usize) -> String {
    format!("{FRAMES}/u_{number:04}.vtu")
}

fn write_row(file: &mut (impl Write + ?Sized), time: f64, values: &[f64]) -> std::io::Result<()> {
    let mut row = format!("{time:?}");
    values.iter().for_each(|value| row += &format!(",{value:?}"));
    row.push('\n');
    file.write_all(row.as_bytes())
}

/// Returns the times of frames and of traces, ascending, each time once.
fn moments(case: &Case) -> Vec<Moment> {
    let Some(time) = &case.file.time else { return Vec::new() };
    let listed = |times: &Option<Times>| -> Vec<f64> {
        let mut times = match times {
            None => Vec::new(),
            Some(Times::List(times)) => times.clone(),
            Some(Times::Every { every }) => {
                let n = ((time.end - time.start) / every * (1.0 + 1e-12)).floor() as usize;
                let mut times: Vec<f64> =
                    (0..=n).map(|i| (time.start + i as f64 * every).min(time.end)).collect();
                if times.last().is_some_and(|last| *last < time.end - 1e-9 * every) {
                    times.push(time.end);
                }
                times
            }
        };
        times.sort_by(f64::total_cmp);
        times.dedup();
        times
    };
    let frames = listed(&time.frames).into_iter().enumerate();
    let frames = frames.map(|(number, time)| Moment { time, frame: Some(number), is_trace: false });
    let mut moments: Vec<Moment> = frames.collect();
    let traces = listed(&time.traces).into_iter();
    moments.extend(traces.map(|time| Moment { time, frame: None, is_trace: true }));
    moments.sort_by(|a, b| a.time.total_cmp(&b.time));
    moments.dedup_by(|later, kept| {
        let is_same = later.time == kept.time;
        if is_same {
            kept.frame = kept.frame.or(later.frame);
            kept.is_trace |= later.is_trace;
        }
        is_same
    });
    moments
}
