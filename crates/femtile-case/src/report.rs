use std::collections::BTreeMap;

use femtile_device::{MemoryUse, part};
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_mesh::check::CheckReport;
use femtile_mesh::io::FileSum;
use femtile_report::significant;
use femtile_solve::{Level, Mode, PartitionQuality, RanksUsed, Solution};
use serde::{Deserialize, Serialize};

use crate::side_matrix::SideMatrix;
use crate::{Case, CaseError};

/// The report of a run, which is written as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The mesh as it was solved on.
    pub mesh: MeshReport,
    /// The space.
    pub space: SpaceReport,
    /// The solve.
    pub solve: SolveReport,
    /// How the problem was divided among ranks; left out if one solved it alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RanksReport>,
    /// The steps in time, of an equation that has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<TimeReport>,
    /// The modes, by ascending eigenvalues; left out without `[modes]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modes: Vec<ModeReport>,
    /// The fluxes through sides at the value 1 on one of them; left out without `[output] matrix`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matrix: Option<SideMatrix>,
    /// The other files of the run by name; none if nothing was written.
    pub files: BTreeMap<String, FileReport>,
    /// The functionals by name.
    pub functionals: BTreeMap<String, f64>,
    /// Seconds spent in each stage.
    pub timings_s: Timings,
    /// Memory held.
    pub memory_bytes: MemoryReport,
    /// The device that did the work.
    pub device: String,
    /// The reason for the device.
    pub device_reason: String,
    /// Kernels launched, those of replayed recordings included; zero on a CPU.
    pub kernel_launches: u64,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Keys of `references.bib` for the methods used.
    pub citations: Vec<String>,
    /// Version of Femtile.
    pub version: String,
}

/// The mesh as it was solved on.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct MeshReport {
    /// Nodes, without orphans.
    pub n_nodes: usize,
    /// Cells.
    pub n_cells: usize,
    /// Nodes of the file that belonged to no cell and were dropped.
    pub n_orphans: usize,
    /// Length, area or volume.
    pub volume: f64,
    /// The cells of the file, if they were divided into simplices, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub division: Option<String>,
}

/// The space of finite elements.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SpaceReport {
    /// Degrees of freedom of all components, constrained ones included.
    pub n_dofs: usize,
    /// Polynomial degree of the elements; none on a grid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degree: Option<usize>,
    /// Components of u; left out if there is one.
    #[serde(skip_serializing_if = "is_one")]
    pub components: usize,
}

fn is_one(n: &usize) -> bool {
    *n == 1
}

/// The outcome of the solve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SolveReport {
    /// Iterations done; of an equation in time the steps.
    pub iterations: usize,
    /// The reason it ended.
    #[serde(serialize_with = "stop_name")]
    pub stop: Stop,
    /// ‖r‖/‖b‖ at the end, by the recurrence; null if nothing is iterated.
    pub relative_residual: f64,
    /// ‖b − Ax‖/‖b‖ at the end, computed afresh; null if nothing is iterated.
    pub true_relative_residual: f64,
    /// An estimate of the energy norm of the error that the iteration leaves, from above; null if the method
    /// has none.
    pub algebraic_error_estimate: Option<f64>,
    /// An estimate of the energy norm of the error of the finite elements; left out unless `[output] fields` has "error".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discretization_error_estimate: Option<f64>,
    /// The same over the energy norm of u, $(\int \sigma\nabla u\cdot\nabla u)^{1/2}$; left out with it, and
    /// if u is constant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub discretization_error_relative: Option<f64>,
    /// The energy norm of the solution of the linear system, to compare the estimate with; null if nothing is
    /// iterated.
    pub energy_norm: f64,
    /// ‖r‖/‖b‖ before the first and after every iteration.
    pub residuals: Vec<f64>,
    /// The form of the operator: the format of its matrix, or `matrix-free`; none if nothing is iterated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// Cells by the way in which an operator without a matrix obtains their metric; empty with a matrix.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub geometry: BTreeMap<&'static str, usize>,
    /// The reason for the matrix format; none without a matrix.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format_reason: Option<String>,
    /// The preconditioner; none if nothing is iterated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preconditioner: Option<&'static str>,
    /// The reason for the preconditioner.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preconditioner_reason: Option<String>,
    /// The iteration if a coefficient depends on u.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nonlinear: Option<NonlinearReport>,
    /// The initial iterate, if it is not zero: `full multigrid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<&'static str>,
    /// The levels of multigrid, the finest first; none without it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<LevelReport>,
}

impl SolveReport {
    /// Returns the report of a solve without an iteration, after these steps.
    pub(crate) fn new(iterations: usize, stop: Stop) -> Self {
        Self {
            iterations,
            stop,
            relative_residual: f64::NAN,
            true_relative_residual: f64::NAN,
            algebraic_error_estimate: None,
            discretization_error_estimate: None,
            discretization_error_relative: None,
            energy_norm: f64::NAN,
            residuals: Vec::new(),
            operator: None,
            geometry: BTreeMap::new(),
            format_reason: None,
            preconditioner: None,
            preconditioner_reason: None,
            nonlinear: None,
            start: None,
            levels: Vec::new(),
        }
    }

    /// Returns what the outcome of an iteration tells.
    pub(crate) fn of_outcome(outcome: &CgOutcome) -> Self {
        Self {
            relative_residual: outcome.relative_residual,
            true_relative_residual: outcome.true_relative_residual,
            algebraic_error_estimate: outcome.energy_error,
            energy_norm: outcome.energy_norm,
            residuals: outcome.residuals.clone(),
            ..Self::new(outcome.iterations, outcome.stop)
        }
    }
}

/// How an equation whose coefficients depend on u was solved.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NonlinearReport {
    /// The linearization: newton or picard.
    pub method: &'static str,
    /// Linearizations; of an equation in time those of all steps.
    pub iterations: usize,
    /// ‖r‖/‖b‖ before the first and after every iteration; of an equation in time those of the last stage, of load steps those of
    /// the last one.
    pub residuals: Vec<f64>,
    /// The load steps; none without `[continuation]`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub load_steps: Vec<LoadStepReport>,
}

/// A load step that converged.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LoadStepReport {
    /// t at its end.
    pub t: f64,
    /// Its linearizations.
    pub iterations: usize,
}

impl From<&femtile_solve::NonlinearReport> for NonlinearReport {
    fn from(report: &femtile_solve::NonlinearReport) -> Self {
        let femtile_solve::NonlinearReport { method, iterations, residuals } = report;
        Self {
            method: method.name(),
            iterations: *iterations,
            residuals: residuals.clone(),
            load_steps: Vec::new(),
        }
    }
}

/// How a problem was divided among ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RanksReport {
    /// Number of ranks.
    pub n_ranks: usize,
    /// The way to divide the mesh.
    pub partition: &'static str,
    /// Cells of the rank with the fewest, and with the most.
    pub cells: [usize; 2],
    /// Unknowns of the rank with the fewest, and with the most.
    pub unknowns: [usize; 2],
    /// The most copies of unknowns of others that a rank keeps.
    pub most_ghosts: usize,
    /// Nodes of cells of several ranks.
    pub n_shared_nodes: usize,
}

impl From<&RanksUsed> for RanksReport {
    fn from(used: &RanksUsed) -> Self {
        let RanksUsed { n_ranks, partition, quality, unknowns, most_ghosts } = *used;
        let PartitionQuality { fewest_cells, most_cells, n_shared_nodes } = quality;
        let cells = [fewest_cells, most_cells];
        Self { n_ranks, partition, cells, unknowns, most_ghosts, n_shared_nodes }
    }
}

/// A level of multigrid.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelReport {
    /// Rows of its matrix; of geometric multigrid, which has none, its unknowns.
    pub n_rows: usize,
    /// Non-zeros of its matrix, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n_nonzeros: Option<usize>,
    /// Patches of its rows, if they smooth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n_patches: Option<usize>,
    /// The format of its matrix, if products with it smooth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
}

impl From<&Level> for LevelReport {
    fn from(level: &Level) -> Self {
        let Level { n_rows, n_nonzeros, n_patches, format } = *level;
        Self { n_rows, n_nonzeros, n_patches, format: format.map(|format| format.name()) }
    }
}

/// The outcome of time stepping.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimeReport {
    /// The scheme.
    pub scheme: &'static str,
    /// Steps done.
    pub steps: usize,
    /// Length of a step.
    pub step_length: f64,
    /// The time reached.
    pub reached: f64,
    /// The reason the run ended: finished, interrupted, time-limit, diverged, solver-failed or step-too-short.
    pub stop: &'static str,
    /// Seconds a step took, on average.
    pub seconds_per_step: f64,
    /// Nodes that were advanced by a step in a second.
    pub nodes_per_second: f64,
    /// Steps rejected by the error estimate; none with alternating directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<usize>,
    /// Iterations of linear solvers; none with alternating directions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<usize>,
}

/// A mode, whose function is the field `mode_1` and so on of the solution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ModeReport {
    /// λ.
    pub eigenvalue: f64,
    /// √λ/2π; null if λ is negative.
    pub frequency: Option<f64>,
    /// ‖A u − λ M u‖/(λ‖M u‖), with the largest |λ| that was asked for in place of λ.
    pub residual: f64,
}

impl From<&Mode> for ModeReport {
    fn from(mode: &Mode) -> Self {
        Self { eigenvalue: mode.value, frequency: mode.frequency(), residual: mode.residual }
    }
}

impl ModeReport {
    /// Returns eigenvalue and frequency with some digits.
    pub fn numbers(&self, digits: usize) -> [String; 2] {
        let frequency = self.frequency.map_or_else(|| "–".into(), |frequency| significant(frequency, digits));
        [significant(self.eigenvalue, digits), frequency]
    }
}

/// Seconds spent in each stage.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Timings {
    /// Reading or making the mesh.
    pub read: f64,
    /// Checking and refining it.
    pub check: f64,
    /// Boundary, coefficients, functionals.
    pub space: f64,
    /// Matrix and right side.
    pub assemble: f64,
    /// The preconditioner.
    pub setup: f64,
    /// The iterations.
    pub solve: f64,
    /// Functionals and files.
    pub write: f64,
}

impl From<femtile_solve::Timings> for Timings {
    fn from(timings: femtile_solve::Timings) -> Self {
        let femtile_solve::Timings { read, check, space, assemble, setup, solve, write } = timings;
        Self { read, check, space, assemble, setup, solve, write }
    }
}

/// Memory held.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryReport {
    /// The most the process has held at once; null if the system does not say.
    pub peak: Option<u64>,
    /// The most that arrays took of the memory of the GPU; null on the CPU.
    pub gpu_peak: Option<usize>,
    /// The most that arrays of the GPU took of the memory of the host; null on the CPU.
    pub gpu_on_host_peak: Option<usize>,
}

impl MemoryReport {
    /// Creates a report of device memory; the peak of the process is set at the end.
    pub(crate) fn of_device(used: Option<MemoryUse>) -> Self {
        Self {
            peak: None,
            gpu_peak: used.map(|used| used.device_peak),
            gpu_on_host_peak: used.map(|used| used.host_peak),
        }
    }
}

/// Size and checksum of a file of results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileReport {
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256 in hexadecimal digits.
    pub sha256: String,
}

impl From<FileSum> for FileReport {
    fn from(sum: FileSum) -> Self {
        Self { bytes: sum.n_bytes, sha256: sum.digits() }
    }
}

fn stop_name<S: serde::Serializer>(stop: &Stop, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(stop.name())
}

/// Returns a warning for each number that is beyond the range of numbers.
pub(crate) fn overflows(energy_norm: f64, functionals: &BTreeMap<String, f64>) -> Vec<String> {
    let known = functionals.iter().map(|(name, value)| (format!("functional `{name}`"), *value));
    let energy_norm = ("energy norm of the solution".to_owned(), energy_norm);
    let warning = |(name, value): (String, f64)| {
        let message = "is beyond the largest number, 1.8e308, and null in the report: choose units in which it is smaller";
        value.is_infinite().then(|| format!("the {name} {message}"))
    };
    known.chain([energy_norm]).filter_map(warning).collect()
}

impl Report {
    /// Returns the report of a run of which nothing is known but the program.
    pub(crate) fn of_run() -> Self {
        Self {
            mesh: MeshReport::default(),
            space: SpaceReport::default(),
            solve: SolveReport::new(0, Stop::Converged),
            ranks: None,
            time: None,
            modes: Vec::new(),
            matrix: None,
            files: BTreeMap::new(),
            functionals: BTreeMap::new(),
            timings_s: Timings::default(),
            memory_bytes: MemoryReport::of_device(None),
            device: String::new(),
            device_reason: String::new(),
            kernel_launches: 0,
            warnings: Vec::new(),
            citations: Vec::new(),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// Describes a solution of a stationary case on a mesh that was checked.
    pub(crate) fn of_solution(
        case: &Case,
        checked: &CheckReport,
        solution: &Solution<'_>,
        (functionals, mut warnings): (BTreeMap<String, f64>, Vec<String>),
    ) -> Result<Self, CaseError> {
        let outcome = solution.outcome();
        let [n_nodes, n_cells, n_dofs] = solution.counts();
        let n_components = solution.n_components();
        let memory = solution.memory();
        warnings.extend(overflows(outcome.energy_norm, &functionals));
        Ok(Self {
            mesh: MeshReport {
                n_nodes,
                n_cells,
                n_orphans: checked.n_orphans,
                division: checked.division.clone(),
                // That of the check takes curved cells as straight, and is of a part if the mesh is
                // distributed.
                volume: match solution.discretization().space().is_some() || solution.is_distributed() {
                    true => part("volume", || solution.component(0).measure())?,
                    false => checked.volume,
                },
            },
            space: SpaceReport {
                n_dofs: n_dofs * n_components,
                degree: Some(case.file.space.degree as usize),
                components: n_components,
            },
            solve: SolveReport {
                operator: Some(solution.operator().into()),
                geometry: solution.geometries().iter().map(|(way, n)| (way.name(), *n)).collect(),
                format_reason: solution.format_reason().map(str::to_owned),
                preconditioner: Some(solution.preconditioner()),
                preconditioner_reason: Some(solution.preconditioner_reason().into()),
                nonlinear: solution.nonlinear().map(NonlinearReport::from),
                start: solution.has_full_start().then_some("full multigrid"),
                levels: solution.levels().iter().map(LevelReport::from).collect(),
                ..SolveReport::of_outcome(outcome)
            },
            ranks: solution.ranks().map(RanksReport::from),
            functionals,
            memory_bytes: MemoryReport::of_device(memory),
            device: solution.device().into(),
            device_reason: solution.device_reason().into(),
            kernel_launches: solution.kernel_launches(),
            warnings,
            citations: solution.citations().iter().map(|key| (*key).into()).collect(),
            ..Self::of_run()
        })
    }

    /// The report as JSON text.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_else(|error| format!("{{\"error\": \"{error}\"}}"))
    }
}
