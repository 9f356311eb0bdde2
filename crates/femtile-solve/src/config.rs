//! Settings of a solve.

use std::str::FromStr;
use std::time::Duration;

use femtile_amg::{AmgConfig, AmgError, Cycle};
use femtile_linalg::krylov::gmres::GmresConfig;
use femtile_linalg::krylov::s_step_cg::{MAX_STEPS, SStepCgConfig};
use femtile_linalg::precondition::LevelPrecision;
use femtile_matrix_free::MetricEvaluation;
use femtile_multigrid::{PMultigridConfig, Smoother};
pub use femtile_sparse::MatrixFormat;
pub use femtile_sparse::choice::Remembered;

use crate::{NonlinearConfig, Partitioner, Ranks, SolveError};

/// Settings of a solve: the device, the iterative method and its preconditioner, when it ends.
#[derive(Debug, Clone, PartialEq)]
pub struct SolverConfig {
    /// The device.
    pub device: DeviceChoice,
    /// With [`DeviceChoice::Cuda`], the GPUs that the ranks of a host use, assigned cyclically. If the list
    /// is empty, all ranks use the GPU of that setting.
    pub gpus: Vec<usize>,
    /// CPU threads; 0 for all. If ranks are threads, the number for all ranks together.
    pub threads: usize,
    /// The ranks that share the work.
    pub ranks: Ranks,
    /// The way to divide a mesh among ranks.
    pub partitioner: Partitioner,
    /// The most bytes of a solve; by default those of the machine, or of its control group.
    pub memory_limit: Option<u64>,
    /// The form of the operator.
    pub operator: OperatorKind,
    /// Evaluation of cell metrics in a matrix-free operator; by default the cheapest for each batch of cells.
    pub metric: Option<MetricEvaluation>,
    /// The storage format of a matrix, also of the level matrices of algebraic multigrid.
    pub format: MatrixFormat,
    /// Formats that searches have found: [`MatrixFormat::Auto`] takes them for the matrices that they were found for.
    pub remembered: Vec<Remembered>,
    /// The iterative method.
    pub method: Method,
    /// The preconditioner.
    pub preconditioner: PreconditionerConfig,
    /// The solve ends when ‖r‖ ≤ tolerance · ‖b‖, `b` taken after boundary values are lifted, and the other tests of
    /// docs/krylov-methods.md hold.
    pub tolerance: f64,
    /// The solve ends after this many iterations at the latest.
    pub max_iterations: usize,
    /// The solve ends after this time at the latest.
    pub time_limit: Option<Duration>,
    /// The iteration if coefficients depend on u.
    pub nonlinear: NonlinearConfig,
    /// Whether iterations on the residual equation verify the error, at most as many again and a thousand; done without being
    /// asked for with up to 4,096 unknowns and where the eigenvalues of σ differ by a factor of a million.
    pub is_verified: bool,
}

impl Default for SolverConfig {
    fn default() -> Self {
        Self {
            device: DeviceChoice::Auto,
            gpus: Vec::new(),
            threads: 0,
            ranks: Ranks::One,
            partitioner: Partitioner::default(),
            memory_limit: None,
            operator: OperatorKind::Auto,
            metric: None,
            format: MatrixFormat::Auto,
            remembered: Vec::new(),
            method: Method::Cg,
            preconditioner: PreconditionerConfig::Auto,
            tolerance: 1e-10,
            max_iterations: 10_000,
            time_limit: None,
            nonlinear: NonlinearConfig::default(),
            is_verified: false,
        }
    }
}

/// The device of a solve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// The fastest one for the problem that is there.
    #[default]
    Auto,
    /// The processor.
    Cpu,
    /// The GPU with this number.
    Cuda(usize),
}

impl FromStr for DeviceChoice {
    type Err = SolveError;

    /// Reads `auto`, `cpu`, `cuda` or `cuda:N`.
    fn from_str(text: &str) -> Result<Self, SolveError> {
        match (text, text.strip_prefix("cuda:").map(str::parse)) {
            ("auto", _) => Ok(Self::Auto),
            ("cpu", _) => Ok(Self::Cpu),
            ("cuda", _) => Ok(Self::Cuda(0)),
            (_, Some(Ok(ordinal))) => Ok(Self::Cuda(ordinal)),
            _ => {
                let message = format!("there is no device `{text}`; use auto, cpu, cuda or cuda:N");
                Err(SolveError::solver("device", message))
            }
        }
    }
}

impl DeviceChoice {
    /// Reads what [`DeviceChoice::from_str`] reads, or several GPUs, such as `cuda:0-3` or `cuda:0,2`: the first of them, and all
    /// of them.
    ///
    /// # Errors
    /// [`SolveError::Setting`].
    pub fn with_gpus(text: &str) -> Result<(Self, Vec<usize>), SolveError> {
        let Some(list) = text.strip_prefix("cuda:").filter(|list| list.contains([',', '-'])) else {
            return Ok((text.parse()?, Vec::new()));
        };
        let gpus: Option<Vec<Vec<usize>>> = list.split(',').map(range_of).collect();
        match gpus.map(|gpus| gpus.concat()) {
            Some(gpus) if gpus.len() <= MOST_GPUS => Ok((Self::Cuda(gpus[0]), gpus)),
            _ => {
                let message =
                    format!("`{text}` names no GPUs; write cuda:0,1 or cuda:0-3, up to {MOST_GPUS}");
                Err(SolveError::solver("device", message))
            }
        }
    }
}

/// The most GPUs of a list.
const MOST_GPUS: usize = 64;

/// The numbers from the first to the last of `A-B`, or `A` alone; none if that is no such range.
fn range_of(text: &str) -> Option<Vec<usize>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last): (usize, usize) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last && last < first.saturating_add(MOST_GPUS)).then(|| (first..=last).collect())
}

/// The form of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OperatorKind {
    /// The fastest one for the space and the preconditioner.
    #[default]
    Auto,
    /// A sparse matrix.
    Assembled,
    /// Computed from the cells in every product, on quadrilaterals and hexahedra.
    MatrixFree,
}

/// Iterative methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// Conjugate gradients.
    #[default]
    Cg,
    /// Conjugate gradients with a single pass over all vectors per iteration.
    MergedCg,
    /// Conjugate gradients with one reduction per iteration.
    PipelinedCg,
    /// Conjugate gradients that take several steps at once.
    SStepCg {
        /// Steps at once, 1 to 6.
        steps: usize,
    },
    /// The generalized minimal residual method with restarts.
    Gmres {
        /// Directions before a restart.
        restart: usize,
    },
}

impl Method {
    /// Steps of s-step conjugate gradients by default.
    pub fn default_steps() -> usize {
        SStepCgConfig::default().steps
    }

    /// Directions of GMRES by default.
    pub fn default_restart() -> usize {
        GmresConfig::default().restart
    }

    /// Returns the name, as in case files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cg => "cg",
            Self::MergedCg => "merged-cg",
            Self::PipelinedCg => "pipelined-cg",
            Self::SStepCg { .. } => "s-step-cg",
            Self::Gmres { .. } => "gmres",
        }
    }
}

/// A preconditioner with its options.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum PreconditionerConfig {
    /// The one that is expected to be fastest for the problem: geometric multigrid if it serves, p-multigrid
    /// on other quadrilaterals and hexahedra of degree 2 and more, algebraic multigrid else; the diagonal if
    /// a few iterations with it are enough.
    #[default]
    Auto,
    /// None.
    None,
    /// The diagonal of the matrix.
    Jacobi,
    /// Algebraic multigrid, for linear elements and matrices.
    Amg(AmgOptions),
    /// Geometric multigrid, on boxes of quadrilaterals or hexahedra.
    Gmg(GmgOptions),
    /// p-multigrid with algebraic multigrid below, on quadrilaterals and hexahedra.
    Pmg(PmgOptions),
}

impl PreconditionerConfig {
    /// Takes a format for the levels of algebraic multigrid, unless it leaves the choice.
    pub(crate) fn take_format(&mut self, format: MatrixFormat) {
        let amg = match self {
            Self::Amg(amg) => amg,
            Self::Pmg(options) => &mut options.amg,
            Self::Auto | Self::None | Self::Jacobi | Self::Gmg(_) => return,
        };
        if format != MatrixFormat::Auto {
            amg.config.format = format;
        }
    }

    /// Returns the name, as in case files.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Jacobi => "jacobi",
            Self::Amg(_) => "amg",
            Self::Gmg(_) => "gmg",
            Self::Pmg(_) => "pmg",
        }
    }

    /// Returns whether it scales each row by itself, or may be chosen to, as merged and s-step conjugate gradients need.
    pub const fn is_diagonal(&self) -> bool {
        matches!(self, Self::Auto | Self::Jacobi | Self::None)
    }

    /// Returns the name of a multigrid method that is set up from cells, not from a matrix.
    pub const fn of_cells(&self) -> Option<&'static str> {
        match self {
            Self::Gmg(_) => Some("geometric multigrid"),
            Self::Pmg(_) => Some("p-multigrid"),
            _ => None,
        }
    }

    /// Returns the options of algebraic multigrid, if it is a part.
    pub const fn amg(&self) -> Option<&AmgOptions> {
        match self {
            Self::Amg(amg) | Self::Pmg(PmgOptions { amg, .. }) => Some(amg),
            _ => None,
        }
    }

    /// Returns whether aggregates of algebraic multigrid follow the cells of a mesh.
    pub(crate) fn needs_graph_of_mesh(&self) -> bool {
        self.amg().is_some_and(|amg| amg.graph == AmgGraph::Mesh)
    }

    /// Returns the keys of the papers behind it.
    pub(crate) fn citations(&self) -> Vec<&'static str> {
        let mut keys = match self {
            Self::Amg(_) => vec!["vanek1996", "fu2014"],
            Self::Gmg(_) => vec!["cui2024"],
            Self::Pmg(_) => vec!["fehn2020", "vanek1996", "fu2014"],
            Self::Auto | Self::Jacobi | Self::None => Vec::new(),
        };
        if self.amg().is_some_and(|amg| amg.config.cycle == Cycle::K) {
            keys.extend(["notay2000", "notay2010"]);
        }
        keys
    }
}

/// The graph that the first aggregates of algebraic multigrid follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AmgGraph {
    /// The entries of the matrix that are strong connections.
    #[default]
    Matrix,
    /// The cells of the mesh, `[fu2014]`, whatever entries the matrix has; of triangles and tetrahedra.
    Mesh,
}

/// Options of algebraic multigrid.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AmgOptions {
    /// Settings of the hierarchy.
    pub config: AmgConfig,
    /// The graph of the first level.
    pub graph: AmgGraph,
    /// Precision of the levels.
    pub precision: LevelPrecision,
}

/// Options of geometric multigrid.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GmgOptions {
    /// The smoother on every level.
    pub smoother: Smoother,
    /// Precision of the levels.
    pub precision: LevelPrecision,
    /// The iterate that the solve begins from.
    pub start: GmgStart,
}

/// The iterate that a solve with geometric multigrid begins from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GmgStart {
    /// Zero.
    #[default]
    None,
    /// Full multigrid on the levels of the preconditioner, which needs no further set-up, on a processor if
    /// cells are rectangles, σ is the same in all of them and Dirichlet values are zero; elsewhere zero.
    Levels,
    /// Full multigrid: the problem discretized on coarser cells as well, its solution interpolated.
    Full,
}

/// Options of p-multigrid.
#[derive(Debug, Clone, PartialEq)]
pub struct PmgOptions {
    /// Degree of the polynomial that smooths before and after the next lower degree, 1 to 16.
    pub sweeps: usize,
    /// Precision of the levels above degree 1.
    pub precision: LevelPrecision,
    /// Options of algebraic multigrid for degree 1.
    pub amg: AmgOptions,
}

impl Default for PmgOptions {
    fn default() -> Self {
        let sweeps = PMultigridConfig::default().sweeps;
        Self { sweeps, precision: LevelPrecision::default(), amg: AmgOptions::default() }
    }
}

/// Checks that a solve can end by this tolerance.
///
/// # Errors
/// The problem and a valid choice.
pub fn check_tolerance(tolerance: f64) -> Result<(), String> {
    if tolerance > 0.0 && tolerance < 1.0 {
        return Ok(());
    }
    Err(match tolerance >= 1.0 {
        true => {
            format!("{tolerance} would call zero a solution: it has to be below 1; 1e-10 is a good choice")
        }
        false => format!("{tolerance} is not positive; 1e-10 is a good choice"),
    })
}

impl SolverConfig {
    /// Checks what can be checked without a mesh.
    ///
    /// # Errors
    /// [`SolveError::Setting`] with the first setting that is wrong.
    pub fn check(&self) -> Result<(), SolveError> {
        let wrong = |key: &str, message: String| Err(SolveError::solver(key, message));
        if let Err(message) = check_tolerance(self.tolerance) {
            return wrong("tolerance", message);
        }
        self.ranks.check()?;
        self.check_method()?;
        if let (Some(name), OperatorKind::Assembled) = (self.preconditioner.of_cells(), self.operator) {
            let message =
                format!("{name} is made from the cells, not from a matrix: use \"auto\" or \"matrix-free\"");
            return wrong("operator", message);
        }
        if let PreconditionerConfig::Pmg(options) = &self.preconditioner {
            let config = PMultigridConfig { sweeps: options.sweeps, ..PMultigridConfig::default() };
            config.check().or_else(|error| wrong("pmg", error.to_string()))?;
        }
        match self.preconditioner.amg() {
            Some(amg) => amg.config.check().map_err(|error| match error {
                AmgError::Setting { field, message } => {
                    SolveError::setting(&["solver".into(), "amg".into(), field.into()], message)
                }
                other => SolveError::solver("amg", other.to_string()),
            }),
            None => Ok(()),
        }
    }

    /// Refuses what the iterative method cannot do.
    fn check_method(&self) -> Result<(), SolveError> {
        let wrong = |key: &str, message: String| Err(SolveError::solver(key, message));
        let (method, name) = (self.method, self.method.name());
        match method {
            Method::SStepCg { steps } if !(1..=MAX_STEPS).contains(&steps) => {
                return wrong(
                    "steps",
                    format!("{steps} is not between 1 and {MAX_STEPS}; 3 is a good choice"),
                );
            }
            Method::Gmres { restart: 0 } => {
                let message = "0 directions leave nothing to choose from; 30 are a good choice";
                return wrong("restart", message.into());
            }
            _ => {}
        }
        let is_k = self.preconditioner.amg().is_some_and(|amg| amg.config.cycle == Cycle::K);
        match method {
            Method::SStepCg { .. } | Method::MergedCg if !self.preconditioner.is_diagonal() => wrong(
                "method",
                format!("{name} takes the preconditioners \"jacobi\" and \"none\"; use \"cg\""),
            ),
            Method::PipelinedCg if is_k => {
                wrong("method", format!("{name} cannot follow K cycles, which are no fixed map; use \"cg\""))
            }
            _ => Ok(()),
        }
    }

    /// Returns whether the operator on quadrilaterals and hexahedra is a matrix.
    pub(crate) fn is_assembled(&self) -> bool {
        match self.operator {
            OperatorKind::MatrixFree => false,
            OperatorKind::Assembled => true,
            // Multigrid is set up from a matrix.
            OperatorKind::Auto => matches!(self.preconditioner, PreconditionerConfig::Amg(_)),
        }
    }

    /// Returns the keys of the papers behind the method and the preconditioner, and of `operator`.
    pub(crate) fn citations(&self, operator: &[&'static str]) -> Vec<&'static str> {
        let method = match self.method {
            Method::Cg => [].as_slice(),
            Method::MergedCg => &["chronopoulos1989", "kronbichler2022"],
            Method::PipelinedCg => &["ghysels2014", "kronbichler2022"],
            Method::SStepCg { .. } => &["chronopoulos1989", "kronbichler2022"],
            Method::Gmres { .. } => &["saad1986"],
        };
        let operator = operator.iter().filter(|key| !method.contains(key));
        let of_solver = ["hestenes1952"].iter().chain(method).chain(operator).copied();
        of_solver.chain(self.preconditioner.citations()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_gpus_are_read_and_wrong_ones_refused() {
        let read = |text| DeviceChoice::with_gpus(text).map_err(|error| error.to_string());
        assert_eq!(read("cuda:2"), Ok((DeviceChoice::Cuda(2), vec![])));
        assert_eq!(read("auto"), Ok((DeviceChoice::Auto, vec![])));
        assert_eq!(read("cuda:1-3"), Ok((DeviceChoice::Cuda(1), vec![1, 2, 3])));
        assert_eq!(read("cuda:3,0, 1-2"), Ok((DeviceChoice::Cuda(3), vec![3, 0, 1, 2])));
        for wrong in ["cuda:", "cuda:1-0", "cuda:0,", "cuda:-1", "cuda:0-99999999999", "cuda:0,x", "cpu:0,1"]
        {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
