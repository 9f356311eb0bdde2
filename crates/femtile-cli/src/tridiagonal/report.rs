use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use super::batch::tuple;

/// Systems that failed are listed up to this many; all are counted.
pub const LISTED: usize = 100;

/// The report of a batch; `--json` writes it.
#[derive(Debug, Serialize)]
pub struct Report {
    pub version: &'static str,
    pub device: String,
    pub device_reason: &'static str,
    pub precision: &'static str,
    pub algorithm: &'static str,
    pub periodic: bool,
    pub pivoting: bool,
    /// Rows of a block, where entries are blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<usize>,
    pub shape: Vec<usize>,
    pub axis: usize,
    pub n_systems: usize,
    pub length: usize,
    /// Seconds of the solve, including the compilation of uncached kernels on a GPU.
    pub timings_s: BTreeMap<&'static str, f64>,
    /// Right side and bands read once, solution written once, over the time of the solve.
    pub gb_per_s: f64,
    pub n_failed: u64,
    /// Systems that failed, as indices of the solution; null stands where the rows of the system are.
    pub failed: Vec<Vec<Option<usize>>>,
    /// The first row that failed.
    pub first_failure: Option<Vec<usize>>,
    pub warnings: Vec<String>,
    pub output: PathBuf,
}

impl Report {
    /// Returns the text for the terminal.
    pub fn summary(&self) -> String {
        let mut text = format!(
            "systems   {} of length {}{} along axis {} of {}, {}\nsolve     {} on {}: {:.3e} s, {:.1} GB/s\n",
            self.n_systems,
            self.length,
            self.block.map(|rows| format!(" in blocks of {rows}")).unwrap_or_default(),
            self.axis,
            tuple(&self.shape),
            self.precision,
            self.algorithm,
            self.device,
            self.timings_s["solve"],
            self.gb_per_s
        );
        if let Some(first) = &self.first_failure {
            let shown: Vec<_> = self.failed.iter().take(5).map(|index| system(index)).collect();
            let more = if self.n_failed as usize > shown.len() { " …" } else { "" };
            let advice = match self.pivoting {
                true => "the matrix is singular there, or an entry is not finite",
                false => {
                    "the pivot is zero or lost to rounding, or an entry is not finite; --pivoting exchanges rows"
                }
            };
            let mut first_system: Vec<_> = first.iter().copied().map(Some).collect();
            first_system[self.axis] = None;
            text += &format!(
                "failed    {} systems, NaN in the results: {}{more}\n          first in row {} of {}: {advice}\n",
                self.n_failed,
                shown.join(", "),
                first[self.axis],
                system(&first_system),
            );
        }
        if self.first_failure.is_none() && self.n_failed > 0 {
            let shown: Vec<_> = self.failed.iter().take(5).map(|index| system(index)).collect();
            let more = if self.n_failed as usize > shown.len() { " …" } else { "" };
            text += &format!(
                "failed    {} systems, NaN in the results: {}{more}\n          an entry of the right side is not finite, \
                 or the solution overflows\n",
                self.n_failed,
                shown.join(", "),
            );
        }
        for warning in &self.warnings {
            text += &format!("warning   {warning}\n");
        }
        text + &format!("results   {}\n", self.output.display())
    }
}

/// Returns the NumPy index of a system in the solution: `u[3, :, 5]`.
fn system(index: &[Option<usize>]) -> String {
    let parts: Vec<_> = index.iter().map(|i| i.map_or(":".into(), |i| i.to_string())).collect();
    format!("u[{}]", parts.join(", "))
}
