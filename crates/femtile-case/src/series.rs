//! Files that a run in time writes as it goes: frames, traces, checkpoints.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use femtile_device::parallel;
use femtile_mesh::MeshError;
use femtile_mesh::io::vtu::WriteOptions;
use femtile_mesh::io::{FileSum, pvd, write_atomically};
use femtile_solve::SolutionData;
use femtile_time::implicit::CheckpointError;

use crate::animation::Animation;
use crate::file::{Times, WriteErrorName};
use crate::file_names::{COLLECTION, FRAMES, TRACES, TRACES_PLOT, VTKHDF, of_frame};
use crate::output::vtu_options;
use crate::plot::trace_plot;
use crate::report::FileReport;
use crate::vtkhdf::Frames;
use crate::{Case, CaseError};

/// The state of a run that goes on.
const CHECKPOINT: &str = "checkpoint.bin";

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
    /// The table and the bytes of its whole rows.
    table: Option<(File, u64)>,
    /// Whether the run continues if a file cannot be written.
    goes_on: bool,
    /// The number of writes that failed, and the first reason.
    failures: (usize, String),
    /// The columns and rows of the table.
    names: Vec<String>,
    rows: Vec<(f64, Vec<f64>)>,
    /// The frames for the page.
    animation: Animation,
    /// The frames for the file of all.
    kept: Frames,
    /// Whether frames of the run before the restart are in files of their own alone.
    is_resumed: bool,
}

impl<'a> Series<'a> {
    /// Prepares the files; the table has one column per name. A restart from `resumed` keeps what was written
    /// until then.
    pub fn new(case: &'a Case, names: Vec<String>, resumed: Option<f64>) -> Result<Self, CaseError> {
        let folder = case.file.output.directory.clone();
        let moments = moments(case);
        let times = moments.iter().map(|moment| moment.time).collect();
        let (table, frames, rows) = (None, Vec::new(), Vec::new());
        let goes_on = case.file.time.as_ref().is_some_and(|time| time.on_write_error == WriteErrorName::GoOn);
        let failures = (0, String::new());
        let mut series = Self {
            case,
            folder,
            moments,
            times,
            frames,
            table,
            goes_on,
            failures,
            names,
            rows,
            animation: Animation::default(),
            kept: Frames::default(),
            is_resumed: resumed.is_some(),
        };
        if !case.embedding.writes_files {
            return Ok(series);
        }
        let io = |path: PathBuf| move |source| CaseError::Io { path, action: "write", source };
        if series.moments.iter().any(|moment| moment.frame.is_some()) {
            let frames = series.folder.join(FRAMES);
            std::fs::create_dir_all(&frames).map_err(io(frames.clone()))?;
        }
        let is_done = |moment: &&Moment| resumed.is_some_and(|time| moment.time < time);
        let earlier =
            series.moments.iter().filter(is_done).filter_map(|moment| Some((moment.time, moment.frame?)));
        let earlier: Vec<_> = earlier.map(|(time, number)| (time, of_frame(number))).collect();
        // Those that the run before has written at these times: a name alone may be that of a frame of another time.
        let collection = std::fs::read_to_string(series.folder.join(COLLECTION)).unwrap_or_default();
        let is_kept = |(time, name): &(f64, String)| {
            pvd::lists(&collection, *time, name) && series.folder.join(name).exists()
        };
        series.frames = earlier.into_iter().filter(is_kept).collect();
        if series.moments.iter().any(|moment| moment.is_trace) {
            series.open_table(resumed)?;
        }
        Ok(series)
    }

    /// Returns the times at which something is written, ascending.
    pub fn times(&self) -> &[f64] {
        &self.times
    }

    /// Opens the table of traces and keeps the rows before the restart time.
    fn open_table(&mut self, resumed: Option<f64>) -> Result<(), CaseError> {
        let path = self.folder.join(TRACES);
        let io = |source| CaseError::Io { path: path.clone(), action: "write", source };
        let earlier = resumed.and_then(|begin| Some((begin, std::fs::read_to_string(&path).ok()?)));
        // The table of a run with other columns is that of another run.
        let rows =
            earlier.as_ref().and_then(|(begin, text)| Some((begin, text.strip_prefix(&*self.header())?)));
        if let Some((begin, rows)) = rows {
            for line in rows.lines() {
                let numbers: Option<Vec<f64>> = line.split(',').map(|text| text.parse().ok()).collect();
                if let Some((&time, values)) = numbers.as_deref().and_then(<[f64]>::split_first)
                    && time < *begin
                    && values.len() == self.names.len()
                {
                    self.rows.push((time, values.to_vec()));
                }
            }
        }
        // As a whole, so that a run that is killed here leaves the rows of the one before.
        self.write_table(&path)?;
        let file = OpenOptions::new().append(true).open(&path).map_err(io)?;
        let n_bytes = file.metadata().map_err(io)?.len();
        self.table = Some((file, n_bytes));
        Ok(())
    }

    /// Writes the table with all rows.
    fn write_table(&self, path: &Path) -> Result<(), MeshError> {
        write_atomically(path, |out| {
            out.write_all(self.header().as_bytes())?;
            self.rows.iter().try_for_each(|(time, values)| out.write_all(row(*time, values).as_bytes()))
        })
    }

    /// Returns the first row of the table.
    fn header(&self) -> String {
        let names = self.names.iter().map(|name| format!(",{}", csv_field(name)));
        format!("t{}\n", names.collect::<String>())
    }

    /// Returns the frames that the page of the run shows.
    pub fn take_animation(&mut self) -> Animation {
        std::mem::take(&mut self.animation)
    }

    /// Returns the frames for the file of all.
    pub fn take_frames(&mut self) -> Frames {
        std::mem::take(&mut self.kept)
    }

    /// Passes on the frame of the moment with a number, if somebody takes it, and keeps it for a page and for the file of all
    /// frames.
    ///
    /// # Errors
    /// Those of `data`, and of a disk that is full.
    pub fn deliver<E: From<MeshError> + Display>(
        &mut self,
        (moment, time): (usize, f64),
        data: impl FnOnce() -> Result<SolutionData, E>,
    ) -> Result<(), E> {
        let (receiver, has_page) = (&self.case.embedding.receiver, self.case.has_page());
        let has_file = self.case.file.output.vtkhdf && self.case.embedding.writes_files;
        if self.moments[moment].frame.is_none() || receiver.is_none() && !has_page && !has_file {
            return Ok(());
        }
        let data = data()?;
        if has_file {
            let kept = self.kept.push(self.case, time, &data);
            self.pass_over(kept)?;
        }
        if has_page {
            self.animation.push(self.case, time, &data);
        }
        if let Some(receiver) = receiver {
            receiver.frame(time, data);
        }
        Ok(())
    }

    /// Writes what belongs to the moment with a number: `frame` writes a file for ParaView, `values` returns those of the
    /// table.
    ///
    /// # Errors
    /// Those of both, and of files that cannot be written.
    pub fn record<E: From<MeshError> + Display>(
        &mut self,
        (moment, time): (usize, f64),
        frame: impl FnOnce(&Path, WriteOptions<'static>) -> Result<(), E>,
        values: impl FnOnce(&[String]) -> Result<Vec<f64>, E>,
    ) -> Result<(), E> {
        let Moment { frame: number, is_trace, .. } = self.moments[moment];
        if let Some(number) = number.filter(|_| self.case.embedding.writes_files) {
            let written = self.write_frame((number, time), frame);
            self.pass_over(written)?;
        }
        if is_trace {
            let values = values(&self.names)?;
            let written = self.write_trace(time, &values).map_err(E::from);
            self.rows.push((time, values));
            self.pass_over(written)?;
        }
        Ok(())
    }

    /// Writes a checkpoint, which appears when it is complete.
    ///
    /// # Errors
    /// [`MeshError::Io`] with the path.
    pub fn checkpoint(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> Result<(), CheckpointError>,
    ) -> Result<(), MeshError> {
        if !self.case.embedding.writes_files {
            return Ok(());
        }
        let io = |error: CheckpointError| match error {
            CheckpointError::Io(error) => error,
            other => std::io::Error::other(other.to_string()),
        };
        let written = write_atomically(&checkpoint_path(self.case), |out| write(out).map_err(io));
        self.pass_over(written)
    }

    /// Counts a write that failed, if the run continues without it.
    fn pass_over<E: Display>(&mut self, written: Result<(), E>) -> Result<(), E> {
        match written {
            Err(error) if self.goes_on => {
                if self.failures.0 == 0 {
                    self.failures.1 = error.to_string();
                }
                self.failures.0 += 1;
                Ok(())
            }
            written => written,
        }
    }

    fn write_frame<E: From<MeshError>>(
        &mut self,
        (number, time): (usize, f64),
        write: impl FnOnce(&Path, WriteOptions<'static>) -> Result<(), E>,
    ) -> Result<(), E> {
        let name = of_frame(number);
        write(&self.folder.join(&name), vtu_options(self.case, false))?;
        self.frames.retain(|(_, known)| *known != name);
        self.frames.push((time, name));
        Ok(pvd::write(&self.folder.join(COLLECTION), &self.frames)?)
    }

    /// Adds a row to the table, or leaves it as it was.
    fn write_trace(&mut self, time: f64, values: &[f64]) -> Result<(), MeshError> {
        let path = self.folder.join(TRACES);
        let Some((file, n_bytes)) = &mut self.table else { return Ok(()) };
        let row = row(time, values);
        if let Err(source) = file.write_all(row.as_bytes()) {
            // A part of the row may have been written; the reason for the failure is the one to report.
            let _ = file.set_len(*n_bytes);
            return Err(MeshError::Io { path, action: "write", source });
        }
        *n_bytes += row.len() as u64;
        Ok(())
    }

    /// Draws the traces; returns the files that were written, by name, and a warning about files that could not be, and about
    /// frames before a restart.
    pub fn finish(mut self) -> Result<(BTreeMap<String, FileReport>, Vec<String>), CaseError> {
        let mut names: Vec<String> = self.frames.iter().map(|(_, name)| name.clone()).collect();
        if !self.frames.is_empty() {
            names.push(COLLECTION.into());
        }
        if self.table.is_some() {
            let svg = trace_plot(&self.names, &self.rows);
            let (table, picture) = (self.folder.join(TRACES), self.folder.join(TRACES_PLOT));
            if self.failures.0 > 0 {
                let written = self.write_table(&table);
                self.pass_over(written)?;
            }
            let written = write_atomically(&picture, |out| out.write_all(svg.as_bytes()));
            names.push(TRACES.into());
            if written.is_ok() {
                names.push(TRACES_PLOT.into());
            }
            self.pass_over(written)?;
        }
        let sums = parallel::map(names.len(), 1, |i| FileSum::of(&self.folder.join(&names[i])));
        let file = |(name, sum): (String, Result<FileSum, MeshError>)| Ok((name, sum?.into()));
        let files = names.into_iter().zip(sums).map(file).collect::<Result<_, CaseError>>()?;
        let (n_failures, first) = &self.failures;
        let failed = (*n_failures > 0).then(|| {
            format!(
                "the run went on although {n_failures} times a frame, a trace or a checkpoint could not be written, first: {first}"
            )
        });
        let has_earlier = self.is_resumed && self.case.file.output.vtkhdf && !self.frames.is_empty();
        let cut = has_earlier.then(|| {
            format!("{VTKHDF} has the frames from the restart on; those before it are in {COLLECTION} alone")
        });
        Ok((files, failed.into_iter().chain(cut).collect()))
    }
}

/// Returns the path of the checkpoint.
pub(crate) fn checkpoint_path(case: &Case) -> PathBuf {
    case.file.output.directory.join(CHECKPOINT)
}

/// Returns a text as a field of a table (RFC 4180): in quotes if it has letters of the format. Control
/// characters other than the end of a line, which the format does not have, are shown as `?`.
pub(crate) fn csv_field(text: &str) -> String {
    let is_shown = |c: char| !c.is_control() || matches!(c, '\n' | '\r');
    let text: String = text.chars().map(|c| if is_shown(c) { c } else { '?' }).collect();
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text,
    }
}

fn row(time: f64, values: &[f64]) -> String {
    let mut row = format!("{time:?}");
    values.iter().for_each(|value| row += &format!(",{value:?}"));
    row.push('\n');
    row
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_letters_of_a_table_are_quoted() {
        for (name, field) in [
            ("a b", "a b"),
            ("a,b", "\"a,b\""),
            ("c\nd", "\"c\nd\""),
            ("say \"e\"", "\"say \"\"e\"\"\""),
            ("f\u{1b}[31m", "f?[31m"),
        ] {
            assert_eq!(csv_field(name), field, "{name:?}");
        }
    }
}
