//! The report of a solve, as text and JSON.

use std::path::PathBuf;

use femtile::linalg::krylov::Stop;
use femtile::linalg::krylov::cg::CgOutcome;
use femtile_case::{LevelReport, SolveReport};
use serde::Serialize;

use crate::solve::levels;

/// The report of a solve; fields agree with those of the report of a case.
#[derive(Serialize)]
pub struct Report {
    pub matrix: MatrixReport,
    pub n_right_sides: usize,
    pub method: &'static str,
    pub preconditioner: &'static str,
    /// Outcomes of the right sides.
    pub solve: Vec<SolveReport>,
    /// The format of the matrix in products.
    pub operator: String,
    pub format_reason: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelReport>,
    pub timings_s: Timings,
    pub device: String,
    pub device_reason: String,
    pub warnings: Vec<String>,
    /// The file with the solutions; none where an interrupted solve kept an earlier one.
    pub output: Option<PathBuf>,
    pub version: &'static str,
}

#[derive(Serialize)]
pub struct MatrixReport {
    pub file: PathBuf,
    pub n_rows: usize,
    pub n_nonzeros: usize,
    pub n_duplicates: usize,
    pub is_symmetric: bool,
}

/// Seconds spent in each stage.
#[derive(Default, Serialize)]
pub struct Timings {
    pub read: f64,
    pub check: f64,
    pub setup: f64,
    pub solve: f64,
    pub write: f64,
}

/// Describes the outcome for one right side.
pub fn of_outcome(outcome: &CgOutcome) -> SolveReport {
    SolveReport {
        iterations: outcome.iterations,
        stop: outcome.stop,
        relative_residual: outcome.relative_residual,
        true_relative_residual: outcome.true_relative_residual,
        algebraic_error_estimate: outcome.energy_error,
        discretization_error_estimate: None,
        discretization_error_relative: None,
        energy_norm: outcome.energy_norm,
        residuals: outcome.residuals.clone(),
        // Those stand once for all columns.
        operator: None,
        preconditioner: None,
        preconditioner_reason: None,
        nonlinear: None,
        start: None,
        geometry: std::collections::BTreeMap::new(),
        format_reason: None,
        levels: Vec::new(),
    }
}

/// Returns the warnings about the columns.
pub fn warnings(outcomes: &[CgOutcome], tolerance: f64) -> impl Iterator<Item = String> {
    outcomes.iter().enumerate().filter_map(move |(column, outcome)| {
        let (rounded, iterations) = (outcome.true_relative_residual, outcome.iterations);
        let what = match outcome.stop {
            Stop::Converged if rounded <= 10.0 * tolerance => return None,
            Stop::Converged => {
                format!(
                    "rounding keeps the true residual at {rounded:.1e}, above the tolerance {tolerance:.1e}"
                )
            }
            _ => {
                let reason = outcome.reason();
                format!("the solve {reason} (‖b − Ax‖/‖b‖ = {rounded:.2e} after {iterations} iterations)")
            }
        };
        Some(format!("column {column} (counted from 0): {what}"))
    })
}

impl Report {
    /// Returns the text for the terminal.
    pub fn summary(&self) -> String {
        let MatrixReport { file, n_rows, n_nonzeros, .. } = &self.matrix;
        let mut text = format!("matrix    {}: {n_rows} rows, {n_nonzeros} non-zeros\n", file.display());
        text += &format!("solver    {} with {}\n", self.method, self.preconditioner);
        text += &format!("format    {}: {}\n", self.operator, self.format_reason);
        text += &format!("solve     {}\n", self.outcomes());
        text += &format!("device    {}: {}\n", self.device, self.device_reason);
        if !self.levels.is_empty() {
            text += &format!("levels    {}\n", levels(&self.levels));
        }
        let Timings { read, check, setup, solve, write } = self.timings_s;
        text += &format!(
            "time      read {read:.2} s, check {check:.2} s, set up {setup:.2} s, solve {solve:.2} s, write {write:.2} s\n"
        );
        for warning in &self.warnings {
            text += &format!("warning   {warning}\n");
        }
        if let Some(output) = &self.output {
            text += &format!("results   {}\n", output.display());
        }
        text
    }

    fn outcomes(&self) -> String {
        let one = |solve: &SolveReport| {
            format!(
                "{} after {} iterations, ‖b − Ax‖/‖b‖ = {:.2e}",
                solve.stop.name(),
                solve.iterations,
                solve.true_relative_residual
            )
        };
        if let ([solve], 1) = (self.solve.as_slice(), self.n_right_sides) {
            return one(solve);
        }
        let n_converged = self.solve.iter().filter(|solve| solve.stop == Stop::Converged).count();
        let iterations: usize = self.solve.iter().map(|solve| solve.iterations).sum();
        format!("{n_converged} of {} right sides converged, {iterations} iterations", self.n_right_sides)
    }
}
