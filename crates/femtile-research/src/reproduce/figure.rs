use std::collections::BTreeSet;

use femtile_bench::Absent;
use serde::Serialize;

use super::Table;

/// Quantity on the vertical axis of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Nanoseconds for an unknown, or for a row of blocks.
    Nanoseconds,
    /// Bytes read and written once each, in 10⁹ a second.
    GbPerS,
    /// 10⁹ operations a second.
    GflopPerS,
    /// Speed relative to the baseline.
    Speedup,
    /// Mean of the squared differences of two solutions.
    MeanSquare,
    /// Microseconds of a product.
    Microseconds,
    /// Rows of a matrix.
    Rows,
    /// Entries of a row.
    Entries,
    /// Threads of a block, or entries of a row for a thread.
    Parameter,
    /// Products with a matrix.
    Products,
    /// One time over another.
    Ratio,
    /// Hundredths.
    Percent,
    /// Thousandths of a second.
    Milliseconds,
    /// Iterations of a solve.
    Iterations,
    /// Nodes of a mesh.
    Nodes,
    /// Numbers of a vector.
    Values,
    /// 10⁶ unknowns a second.
    MdofPerS,
}

/// The horizontal axis of tables whose rows are numbers of unknowns.
pub(super) const UNKNOWNS: &str = "unknowns";
/// Abscissa of roofline figures.
pub(super) const INTENSITY: &str = "operations a byte";

impl Quantity {
    /// Returns the label of the axis.
    pub fn label(self) -> &'static str {
        match self {
            Self::Nanoseconds => "ns",
            Self::GbPerS => "GB/s",
            Self::GflopPerS => "GFLOP/s",
            Self::Speedup => "times faster",
            Self::MeanSquare => "mean square difference",
            Self::Microseconds => "µs",
            Self::Rows => "rows",
            Self::Entries => "entries a row",
            Self::Parameter => "threads or entries",
            Self::Products => "products",
            Self::Ratio => "ratio",
            Self::Percent => "%",
            Self::Milliseconds => "ms",
            Self::Iterations => "iterations",
            Self::Nodes => "nodes",
            Self::Values => "values an unknown",
            Self::MdofPerS => "10⁶ unknowns/s",
        }
    }
}

/// One measured point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The method, such as `thomas-shuffle`.
    pub solver: String,
    /// `femtile`, or the other library with its version.
    pub library: String,
    /// `cpu` or `cuda`, for what the figure groups by.
    pub kind: &'static str,
    /// The device in words.
    pub device: String,
    /// `f32` or `f64`.
    pub precision: &'static str,
    /// `x`, `y` or `z`, x being the contiguous axis; none for block systems.
    pub axis: Option<&'static str>,
    /// Rows of a block; 1 for scalar systems.
    pub block: usize,
    /// Rows of a system.
    pub length: usize,
    /// Number of systems.
    pub n_systems: usize,
    /// Time of the fastest run.
    pub seconds: f64,
    /// Time of one unknown, or of one row of blocks.
    pub ns: f64,
    /// Bands and right side read once and solution written once, in 10⁹ bytes a second.
    pub gb_per_s: f64,
    /// Operations of the block Thomas algorithm, in 10⁹ a second; those of Thomas for scalar systems.
    pub gflop_per_s: f64,
    /// Share of the bandwidth of this device measured in this run: of a triad on a CPU, of a copy on a GPU.
    pub of_bandwidth: Option<f64>,
    /// Mean squared difference from the solution by the Thomas algorithm, if requested.
    pub mean_square: Option<f64>,
}

/// Cycles of a multigrid solve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cycles {
    /// The level, as the paper counts: $2^{L-1}$ cells a side.
    pub level: usize,
    /// The degree of the elements.
    pub degree: usize,
    /// The local solver of the smoother: patches or nodes.
    pub smoother: &'static str,
    /// Printed in the paper; none if it prints nothing.
    pub theirs: Option<usize>,
    /// With the smoother in reversed order after the correction.
    pub ours_reversed: Option<usize>,
    /// In the same order.
    pub ours_same: Option<usize>,
}

/// The points of a figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Rows {
    /// Timed solves of batches of systems.
    Timed(Vec<Row>),
    /// Counted cycles.
    Counted(Vec<Cycles>),
}

impl From<Vec<Row>> for Rows {
    fn from(rows: Vec<Row>) -> Self {
        Self::Timed(rows)
    }
}

impl std::ops::Deref for Rows {
    type Target = [Row];

    /// The timed ones.
    fn deref(&self) -> &[Row] {
        match self {
            Self::Timed(rows) => rows,
            Self::Counted(_) => &[],
        }
    }
}

/// A published statement beside our measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// The compared quantity.
    pub what: String,
    /// Place in the paper.
    pub place: &'static str,
    /// Their figure.
    pub theirs: String,
    /// Ours; none if this machine lacks a requirement.
    pub ours: Option<String>,
}

/// A figure of a paper, measured again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// The paper's key.
    pub paper: &'static str,
    /// Its name on the command line.
    pub item: &'static str,
    /// The title.
    pub title: String,
    /// Quantity on its vertical axis.
    pub quantity: Quantity,
    /// Quantity on its horizontal axis: `length`, `block`, `axis`, `systems`, `unknowns`, or that of its table's rows.
    pub abscissa: &'static str,
    /// Processor, GPU and sizes.
    pub setting: String,
    /// All points.
    pub rows: Rows,
    /// The table of a figure whose points are not batches of systems.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub table: Option<Table>,
    /// Explanations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Statements of the paper's text.
    pub claims: Vec<Claim>,
    /// Peers that could not be measured.
    pub absent: Vec<Absent>,
}

/// The points of one solver in one precision.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Its label.
    pub label: String,
    /// Abscissa and value.
    pub points: Vec<(String, f64)>,
}

/// The bandwidth that a solver reaches over a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Rates {
    /// Its label.
    pub label: String,
    /// The least of all sizes, in 10⁹ bytes a second, and where.
    pub least: (f64, String),
    /// The greatest.
    pub most: (f64, String),
    /// The least as a share of the bandwidth of the device; none for peers.
    pub least_of_bandwidth: Option<f64>,
}

impl Figure {
    /// The bandwidth of each solver over all sizes, in a precision.
    pub fn rates(&self, precision: &str) -> Vec<Rates> {
        let mut all: Vec<Rates> = Vec::new();
        for row in self.rows.iter().filter(|row| row.precision == precision) {
            let (label, here) = (self.label(row), (row.gb_per_s, self.abscissa_of(row).1));
            let Some(rates) = all.iter_mut().find(|rates| rates.label == label) else {
                let least_of_bandwidth = row.of_bandwidth;
                all.push(Rates { label, least: here.clone(), most: here, least_of_bandwidth });
                continue;
            };
            if here.0 < rates.least.0 {
                (rates.least, rates.least_of_bandwidth) = (here.clone(), row.of_bandwidth);
            }
            if here.0 > rates.most.0 {
                rates.most = here;
            }
        }
        all
    }

    /// The precisions that were measured.
    pub fn precisions(&self) -> Vec<&'static str> {
        self.rows.iter().map(|row| row.precision).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// The abscissas of a precision, in the order of the rows.
    pub fn abscissas(&self, precision: &str) -> Vec<String> {
        let mut found: Vec<(usize, String)> = Vec::new();
        for row in self.rows.iter().filter(|row| row.precision == precision) {
            let (order, name) = self.abscissa_of(row);
            if !found.iter().any(|(_, other)| *other == name) {
                found.push((order, name));
            }
        }
        found.sort();
        found.into_iter().map(|(_, name)| name).collect()
    }

    /// The curves of a precision.
    pub fn series(&self, precision: &str) -> Vec<Series> {
        let mut all: Vec<Series> = Vec::new();
        for row in self.rows.iter().filter(|row| row.precision == precision) {
            let Some(value) = self.value(row) else { continue };
            let (label, point) = (self.label(row), (self.abscissa_of(row).1, value));
            match all.iter_mut().find(|series| series.label == label) {
                Some(series) => series.points.push(point),
                None => all.push(Series { label, points: vec![point] }),
            }
        }
        all
    }

    fn abscissa_of(&self, row: &Row) -> (usize, String) {
        match self.abscissa {
            "block" => (row.block, row.block.to_string()),
            "axis" => (0, row.axis.unwrap_or_default().into()),
            "systems" => (row.n_systems, row.n_systems.to_string()),
            _ => (row.length, row.length.to_string()),
        }
    }

    fn label(&self, row: &Row) -> String {
        let axis = if self.abscissa == "axis" { None } else { row.axis };
        let axis = axis.map_or(String::new(), |axis| format!(", {axis}"));
        match row.library.as_str() {
            "femtile" => format!("{} ({}{axis})", row.solver, row.kind),
            library => format!("{library} {} ({}{axis})", row.solver, row.kind),
        }
    }

    /// Returns the plotted value of a row; none without a baseline, or for the baseline itself.
    fn value(&self, row: &Row) -> Option<f64> {
        match self.quantity {
            Quantity::Nanoseconds => Some(row.ns),
            Quantity::MeanSquare => row.mean_square,
            Quantity::GbPerS => Some(row.gb_per_s),
            Quantity::GflopPerS => Some(row.gflop_per_s),
            Quantity::Speedup => {
                let base = self.rows.iter().find(|base| is_gbsv(base) && base.is_same_problem(row))?;
                (!is_gbsv(row)).then_some(base.ns / row.ns)
            }
            _ => None,
        }
    }
}

/// The banded solver that figure 21 compares with.
fn is_gbsv(row: &Row) -> bool {
    row.solver.ends_with("gbsv")
}

impl Row {
    /// Returns whether both are of one size and precision.
    pub fn is_same_problem(&self, other: &Self) -> bool {
        (self.precision, self.block, self.length) == (other.precision, other.block, other.length)
            && self.axis == other.axis
    }

    pub(crate) fn is(&self, kind: &str, solver: &str) -> bool {
        self.library == "femtile" && self.kind == kind && self.solver == solver
    }
}
