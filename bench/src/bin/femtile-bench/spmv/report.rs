//! The report of a survey, as text and JSON.

use std::path::PathBuf;

use comfy_table::{CellAlignment, Table, presets};
use femtile_bench::sparse::{Entry, RowLengths, Survey};
use serde::Serialize;

use super::Input;

/// Characters of the longest bar of the histogram.
const BAR: usize = 40;

/// The report of a survey; `--json` writes it.
#[derive(Debug, Serialize)]
pub struct Report {
    pub version: &'static str,
    pub matrix: String,
    /// Field and symmetry in the banner of the file.
    pub kind: Option<String>,
    pub n_rows: usize,
    pub n_cols: usize,
    pub n_nonzeros: usize,
    pub n_duplicates: usize,
    pub row_lengths: RowLengths,
    pub notes: Vec<String>,
    pub devices: Vec<DeviceReport>,
    /// File of the histogram.
    pub histogram: Option<PathBuf>,
    /// File with the stored results; none where nothing was stored.
    pub kept: Option<PathBuf>,
}

/// Products on one device.
#[derive(Debug, Serialize)]
pub struct DeviceReport {
    #[serde(flatten)]
    pub survey: Survey,
    /// Time of the cost model's choice over that of the fastest format.
    pub model_over_best: Option<f64>,
    /// Time of the tuned format over that of the fastest format.
    pub tuned_over_best: Option<f64>,
    /// The reason the vendor library was not timed.
    pub peer_absent: Option<String>,
}

impl From<Survey> for DeviceReport {
    fn from(survey: Survey) -> Self {
        Self {
            model_over_best: survey.over_best(&survey.model),
            tuned_over_best: survey.tuned.as_ref().and_then(|tuned| survey.over_best(tuned)),
            peer_absent: None,
            survey,
        }
    }
}

impl Report {
    /// Creates the report of a matrix without times.
    pub fn new(input: &Input) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION"),
            matrix: input.name.clone(),
            kind: input.kind.clone(),
            n_rows: input.matrix.n_rows(),
            n_cols: input.matrix.n_cols(),
            n_nonzeros: input.matrix.n_nonzeros(),
            n_duplicates: input.n_duplicates,
            row_lengths: RowLengths::of(&input.matrix.row_lengths()),
            notes: input.notes.clone(),
            devices: Vec::new(),
            histogram: None,
            kept: None,
        }
    }

    /// Returns the text for the terminal.
    pub fn summary(&self) -> String {
        let kind = self.kind.as_ref().map_or(String::new(), |kind| format!(", {kind}"));
        let mut text = format!(
            "matrix    {}: {} × {}, {} non-zeros{kind}\n",
            self.matrix, self.n_rows, self.n_cols, self.n_nonzeros
        );
        text += &self.rows();
        for note in &self.notes {
            text += &format!("note      {note}\n");
        }
        for device in &self.devices {
            text += &device.text();
        }
        if let Some(path) = &self.kept {
            text += &format!("kept      {}; femtile spmv takes it from there\n", path.display());
        }
        text
    }

    fn rows(&self) -> String {
        let rows = &self.row_lengths;
        let mut text = format!(
            "rows      {} to {} entries, median {}, mean {:.2}",
            rows.shortest, rows.longest, rows.median, rows.mean
        );
        if rows.n_empty > 0 {
            text += &format!("; {} have none", rows.n_empty);
        }
        text += "\n";
        if let Some(path) = &self.histogram {
            return text + &format!("histogram {}\n", path.display());
        }
        text + &histogram(rows)
    }
}

/// Returns a line for each bin: lengths, bar, number of rows.
fn histogram(rows: &RowLengths) -> String {
    let label = |from, to| if from == to { format!("{from}") } else { format!("{from} to {to}") };
    let labels: Vec<_> = rows.histogram.iter().map(|bin| label(bin.from, bin.to)).collect();
    let width = labels.iter().map(String::len).max().unwrap_or(0);
    let most = rows.histogram.iter().map(|bin| bin.n_rows).max().unwrap_or(0).max(1);
    let mut text = String::new();
    for (bin, label) in rows.histogram.iter().zip(labels) {
        // A non-empty bin has a visible bar.
        let bar = "█".repeat((BAR * bin.n_rows).div_ceil(most));
        text += &format!("          {label:>width$} {bar} {}\n", bin.n_rows);
    }
    text
}

impl DeviceReport {
    fn text(&self) -> String {
        let Survey { device, bound, fits_cache, .. } = &self.survey;
        let mut text = format!("\ndevice    {device}: {}, {:.1} GB/s\n", bound.name, bound.gb_per_s);
        if let (Some(true), Some(bytes)) = (fits_cache, bound.cache_bytes) {
            text += &format!(
                "note      the matrix fits the cache of {}, so shares of the bandwidth may pass 1\n",
                in_bytes(bytes)
            );
        }
        text += &format!("{}\n", self.table());
        text += &self.choice();
        for skipped in &self.survey.skipped {
            text += &format!("skipped   {}: {}\n", skipped.format, skipped.reason);
        }
        if let Some(reason) = &self.peer_absent {
            text += &format!("peer      {reason}\n");
        }
        text
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::UTF8_BORDERS_ONLY);
        let units = ["time, µs", "padding", "bytes", "GB/s", "share", "expected, µs"];
        table.set_header(["format"].into_iter().chain(units).chain(["choice"]));
        for entry in &self.survey.entries {
            table.add_row(self.row(entry));
        }
        table.column_iter_mut().skip(1).take(6).for_each(|c| c.set_cell_alignment(CellAlignment::Right));
        table
    }

    fn row(&self, entry: &Entry) -> [String; 8] {
        let timed = &entry.timed;
        let ours = |text: String| if entry.is_peer { "–".into() } else { text };
        [
            timed.format.clone(),
            format!("{:.2}", 1e6 * timed.seconds_min),
            ours(format!("{:.3}", timed.padding)),
            ours(in_bytes(timed.bytes)),
            format!("{:.1}", entry.gb_per_s),
            format!("{:.2}", entry.of_bound),
            entry.seconds_expected.map_or("–".into(), |seconds| format!("{:.2}", 1e6 * seconds)),
            if entry.is_peer { String::new() } else { self.marks(&timed.format) },
        ]
    }

    fn marks(&self, format: &str) -> String {
        let model = (format == self.survey.model).then_some("model");
        let tuned = (Some(format) == self.survey.tuned.as_deref()).then_some("tuned");
        model.into_iter().chain(tuned).collect::<Vec<_>>().join(", ")
    }

    /// Which format is taken for this matrix here, and how far from the best it is.
    fn choice(&self) -> String {
        let survey = &self.survey;
        let best = survey.best().map_or("nothing", |best| &best.timed.format);
        let n_timed = survey.entries.iter().filter(|entry| !entry.is_peer).count();
        let against = |over: Option<f64>| match over {
            Some(_) if n_timed == 1 => "nothing else was timed; --all times all formats".into(),
            Some(over) if over > 1.0 => format!("it takes {over:.2} times as long as {best}"),
            Some(_) => "it is the fastest of these".into(),
            None => "it cannot hold this matrix".into(),
        };
        let mut text = format!("model     {}: {}\n", survey.model, against(self.model_over_best));
        if let Some(tuned) = &survey.tuned {
            text += &format!(
                "tuned     {tuned}, found by an earlier search: {}\n",
                against(self.tuned_over_best)
            );
        }
        text
    }
}

fn in_bytes(bytes: usize) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", 1e-3 * bytes as f64),
        _ => format!("{:.1} MB", 1e-6 * bytes as f64),
    }
}
