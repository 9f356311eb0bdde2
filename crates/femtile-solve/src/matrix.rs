use std::hash::{DefaultHasher, Hash, Hasher};

use femtile_amg::Amg;
use femtile_device::{Buffer, Cpu, Cuda, Device};
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_linalg::precondition::Diagonal;
use femtile_linalg::{LinalgError, LinearOperator, Preconditioner};
use femtile_sparse::csr::{Csr, Offsets};
use femtile_sparse::{Format, ProductMatrix, StoredMatrix};

use crate::auto::Solves;
use crate::check::graph_error;
use crate::device::Chosen;
use crate::format::product_matrix;
use crate::method::{SolveDevice, iterate};
use crate::preconditioner::{Level, f64_in_place_of_f32, levels_of};
use crate::{
    AmgOptions, DeviceChoice, LevelPrecision, Method, PreconditionerConfig, Progress, Silent, SolveError,
    SolverConfig, Stage, Stages,
};

/// A solver for a symmetric positive definite matrix, set up once for many right sides.
///
/// ```
/// use femtile_device::Cpu;
/// use femtile_sparse::Triplets;
/// use femtile_solve::{LinearSolver, SolverConfig};
///
/// let n = 1_000;
/// let mut triplets = Triplets::new(n, n);
/// for i in 0..n {
///     triplets.push(i, i, 2.0)?;
///     if i > 0 {
///         triplets.push(i, i - 1, -1.0)?;
///         triplets.push(i - 1, i, -1.0)?;
///     }
/// }
/// let a = triplets.into_csr(&Cpu::new(0)?)?.matrix;
/// let solution = LinearSolver::new(&a, &SolverConfig::default())?.solve(&vec![1.0; n])?;
/// assert!(solution.has_converged());
/// assert!((solution.x[0] - 0.5 * n as f64).abs() < 1e-6 * n as f64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct LinearSolver {
    config: SolverConfig,
    device_reason: String,
    warnings: Vec<String>,
    near_nullspace: Option<Vec<f64>>,
    /// A hash of the pattern.
    pattern: u64,
    cpu: Cpu,
    on: On,
}

enum On {
    Cpu(OnDevice<Cpu>),
    Cuda(OnDevice<Cuda>),
}

/// The solution of a linear system.
#[derive(Debug, Clone)]
#[must_use]
pub struct LinearSolution {
    /// The solution.
    pub x: Vec<f64>,
    /// The outcome of the iterations.
    pub outcome: CgOutcome,
}

impl LinearSolution {
    /// Returns whether the solve met its tolerance.
    pub fn has_converged(&self) -> bool {
        self.outcome.stop == Stop::Converged
    }
}

impl LinearSolver {
    /// Sets a solver up for a matrix, on the device of the settings.
    ///
    /// # Errors
    /// [`SolveError::Setting`] where a setting does not go with a matrix, [`SolveError::Amg`] where multigrid cannot be
    /// set up, [`SolveError::Linalg`] for a matrix that is not square.
    pub fn new(a: &Csr<f64, Cpu>, config: &SolverConfig) -> Result<Self, SolveError> {
        Self::build(a, None, config)
    }

    /// As [`LinearSolver::new`], with vectors on which the matrix is small: what algebraic multigrid keeps exact on its
    /// coarse levels, one vector after the other, such as the rigid motions of elasticity.
    ///
    /// # Errors
    /// As [`LinearSolver::new`]; where the length is no multiple of the number of rows.
    pub fn with_near_nullspace(
        a: &Csr<f64, Cpu>,
        vectors: &[f64],
        config: &SolverConfig,
    ) -> Result<Self, SolveError> {
        Self::build(a, Some(vectors), config)
    }

    fn build(
        a: &Csr<f64, Cpu>,
        near_nullspace: Option<&[f64]>,
        config: &SolverConfig,
    ) -> Result<Self, SolveError> {
        let config = &resolved(config);
        config.check()?;
        if a.n_rows() != a.n_cols() {
            let message = format!("{} × {} is not square", a.n_rows(), a.n_cols());
            return Err(LinalgError::Setting { field: "matrix", message }.into());
        }
        if let Some(name) = config.preconditioner.of_cells() {
            let message = format!("{name} is made from the cells of a mesh: use \"amg\" for a matrix");
            return Err(SolveError::solver("preconditioner", message));
        }
        if config.preconditioner.needs_graph_of_mesh() {
            return Err(graph_error("a matrix comes without a mesh: use \"matrix\"".into()));
        }
        let cpu = Cpu::new(config.threads)?;
        let opened = config.device.open()?;
        let choice = config.device.choose(opened, a.n_rows(), cpu.threads());
        let (mut reason, mut warnings) = (choice.reason, Vec::new());
        let mut on = None;
        if let Chosen::Cuda(cuda) = choice.device {
            let cuda = config.device.with_overflow(&cuda);
            match OnDevice::new(&cuda, a, near_nullspace, config, &mut warnings) {
                Ok(made) => on = Some(On::Cuda(made)),
                Err(error) if config.device == DeviceChoice::Auto && error.is_device_trouble() => {
                    reason = error.to_string();
                    warnings.push(format!("solved on the CPU: {reason}"));
                }
                Err(error) => return Err(error),
            }
        }
        let on = match on {
            Some(on) => on,
            None => {
                let made = cpu.install(|| OnDevice::new(&cpu, a, near_nullspace, config, &mut warnings));
                On::Cpu(made?)
            }
        };
        let near_nullspace = near_nullspace.map(<[f64]>::to_vec);
        let pattern = pattern_of(a);
        let config = config.clone();
        Ok(Self { config, device_reason: reason, warnings, near_nullspace, pattern, cpu, on })
    }

    /// Solves $A x = b$ from zero.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] where the length of `b` is not that of a row, or an entry is not finite; not converging is
    /// an outcome.
    pub fn solve(&self, b: &[f64]) -> Result<LinearSolution, SolveError> {
        self.solve_from(vec![0.0; b.len()], b, &mut Silent)
    }

    /// Solves from an initial guess and reports progress.
    ///
    /// # Errors
    /// As [`LinearSolver::solve`].
    pub fn solve_from(
        &self,
        x: Vec<f64>,
        b: &[f64],
        progress: &mut dyn Progress,
    ) -> Result<LinearSolution, SolveError> {
        for (field, vector) in [("b", b), ("x", &x)] {
            if let Some((i, value)) = vector.iter().enumerate().find(|(_, value)| !value.is_finite()) {
                let message = format!("entry {i} (counted from 0) is {value}");
                return Err(LinalgError::Setting { field, message }.into());
            }
        }
        let config = &self.config;
        match &self.on {
            On::Cpu(on) => self.cpu.install(|| on.solve(config, x, b, progress)),
            On::Cuda(on) => on.solve(config, x, b, progress),
        }
    }

    /// Takes over other values on the same pattern: multigrid keeps its groups.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] where the pattern is another one.
    pub fn refill(&mut self, a: &Csr<f64, Cpu>) -> Result<(), SolveError> {
        if pattern_of(a) != self.pattern {
            let message = "has another pattern than the one that the solver was set up for".into();
            return Err(LinalgError::Setting { field: "matrix", message }.into());
        }
        let near = self.near_nullspace.as_deref();
        match &mut self.on {
            On::Cpu(on) => self.cpu.install(|| on.refill(a, near, &mut self.warnings)),
            On::Cuda(on) => on.refill(a, near, &mut self.warnings),
        }
    }

    /// Returns the device, in words.
    pub fn device(&self) -> String {
        match &self.on {
            On::Cpu(on) => on.matrix.device().description(),
            On::Cuda(on) => on.matrix.device().description(),
        }
    }

    /// Returns the reason for the device.
    pub fn device_reason(&self) -> &str {
        &self.device_reason
    }

    /// Returns the format of the matrix in products, and the reason for it.
    pub fn format(&self) -> (Format, &str) {
        match &self.on {
            On::Cpu(on) => (on.matrix.format(), &on.format_reason),
            On::Cuda(on) => (on.matrix.format(), &on.format_reason),
        }
    }

    /// Returns the levels of multigrid, the finest first; none without multigrid.
    pub fn levels(&self) -> Vec<Level> {
        match &self.on {
            On::Cpu(on) => on.preconditioner.levels(),
            On::Cuda(on) => on.preconditioner.levels(),
        }
    }

    /// Returns the warnings of the setup.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// Returns the settings with a preconditioner in place of a choice: algebraic multigrid wherever the method takes it.
fn resolved(config: &SolverConfig) -> SolverConfig {
    let takes_multigrid = matches!(config.method, Method::Cg | Method::PipelinedCg);
    let mut preconditioner = match &config.preconditioner {
        PreconditionerConfig::Auto if takes_multigrid => PreconditionerConfig::Amg(AmgOptions::default()),
        PreconditionerConfig::Auto => PreconditionerConfig::Jacobi,
        given => given.clone(),
    };
    preconditioner.take_format(config.format);
    SolverConfig { preconditioner, ..config.clone() }
}

/// Returns a hash of the offsets and columns of a matrix.
fn pattern_of(a: &Csr<f64, Cpu>) -> u64 {
    let mut hasher = DefaultHasher::new();
    a.n_cols().hash(&mut hasher);
    match a.offsets() {
        Offsets::Narrow(offsets) => offsets.as_slice().hash(&mut hasher),
        Offsets::Wide(offsets) => offsets.as_slice().hash(&mut hasher),
    }
    a.columns().as_slice().hash(&mut hasher);
    hasher.finish()
}

/// A matrix and its preconditioner on a device.
struct OnDevice<D: SolveDevice> {
    matrix: ProductMatrix<f64, D>,
    format_reason: String,
    preconditioner: OfMatrix<D>,
}

/// A preconditioner that takes over other values.
enum OfMatrix<D: SolveDevice> {
    Diagonal(Diagonal<f64, D>, bool),
    F32(Box<Amg<f32, D>>),
    F64(Box<Amg<f64, D>>),
}

impl<D: SolveDevice> OfMatrix<D> {
    fn new(
        matrix: &mut Csr<f64, D>,
        near_nullspace: Option<&[f64]>,
        config: &PreconditionerConfig,
        warnings: &mut Vec<String>,
    ) -> Result<Self, SolveError> {
        Ok(match config {
            PreconditionerConfig::None => {
                let device = matrix.values().device().clone();
                Self::Diagonal(Diagonal::identity(&device, matrix.n_rows())?, true)
            }
            PreconditionerConfig::Amg(AmgOptions { config, precision, .. }) => {
                if *precision == LevelPrecision::F32 {
                    match Amg::with_memory_limit(matrix, near_nullspace, config) {
                        Err(error) if error.is_of_precision() => {
                            warnings.push(f64_in_place_of_f32(&error));
                        }
                        made => return Ok(Self::F32(Box::new(made?))),
                    }
                }
                Self::F64(Box::new(Amg::with_memory_limit(matrix, near_nullspace, config)?))
            }
            // Multigrid on cells was refused.
            _ => Self::Diagonal(Diagonal::new(matrix)?, false),
        })
    }

    fn as_dyn(&self) -> &dyn Preconditioner<f64, D> {
        match self {
            Self::Diagonal(diagonal, _) => diagonal,
            Self::F32(amg) => amg.as_ref(),
            Self::F64(amg) => amg.as_ref(),
        }
    }

    fn levels(&self) -> Vec<Level> {
        match self {
            Self::Diagonal(..) => Vec::new(),
            Self::F32(amg) => levels_of(amg.hierarchy()),
            Self::F64(amg) => levels_of(amg.hierarchy()),
        }
    }

    /// Replaces the values; levels in f32 become f64 if they fail with these values.
    fn refill(
        &mut self,
        a: &Csr<f64, D>,
        near_nullspace: Option<&[f64]>,
        warnings: &mut Vec<String>,
    ) -> Result<(), SolveError> {
        match self {
            Self::Diagonal(_, true) => {}
            Self::Diagonal(diagonal, false) => *diagonal = Diagonal::new(a)?,
            Self::F32(amg) => match amg.refill(a, near_nullspace) {
                Err(error) if error.is_of_precision() => {
                    let amg = Amg::new(a, near_nullspace, amg.hierarchy().config())?;
                    warnings.push(f64_in_place_of_f32(&error));
                    *self = Self::F64(Box::new(amg));
                }
                refilled => refilled?,
            },
            Self::F64(amg) => amg.refill(a, near_nullspace)?,
        }
        Ok(())
    }
}

impl<D: SolveDevice> OnDevice<D> {
    fn new(
        device: &D,
        a: &Csr<f64, Cpu>,
        near_nullspace: Option<&[f64]>,
        config: &SolverConfig,
        warnings: &mut Vec<String>,
    ) -> Result<Self, SolveError> {
        let mut matrix = a.copy_to(device)?;
        let preconditioner = OfMatrix::new(&mut matrix, near_nullspace, &config.preconditioner, warnings)?;
        let (matrix, format_reason) = product_matrix(matrix, config, Solves::One)?;
        Ok(Self { matrix, format_reason, preconditioner })
    }

    fn solve(
        &self,
        config: &SolverConfig,
        x: Vec<f64>,
        b: &[f64],
        progress: &mut dyn Progress,
    ) -> Result<LinearSolution, SolveError> {
        let device = self.matrix.device();
        let (mut x, b) = (Buffer::from_vec(device, x)?, Buffer::from_host(device, b)?);
        let parts = (&self.matrix as &dyn LinearOperator<f64, D>, self.preconditioner.as_dyn());
        let stages = &mut Stages::new(progress);
        stages.begin(Stage::Solve)?;
        let outcome = iterate(config, &mut x, parts, &b, stages)?;
        Ok(LinearSolution { x: x.to_host()?, outcome })
    }

    fn refill(
        &mut self,
        a: &Csr<f64, Cpu>,
        near_nullspace: Option<&[f64]>,
        warnings: &mut Vec<String>,
    ) -> Result<(), SolveError> {
        match &mut self.matrix {
            ProductMatrix::Rows(rows) => {
                rows.values_mut().upload(a.values().as_slice())?;
                self.preconditioner.refill(rows, near_nullspace, warnings)
            }
            ProductMatrix::Slices(slices) => {
                let rows = a.copy_to(slices.device())?;
                self.preconditioner.refill(&rows, near_nullspace, warnings)?;
                Ok(slices.refill(&rows)?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use femtile_sparse::Triplets;

    use super::*;

    /// Stacks of three unknowns in a row, `strength` times as strongly connected as neighbours, the first stack held.
    fn stacks(n: usize, strength: f64) -> Csr<f64, Cpu> {
        let mut triplets = Triplets::new(3 * n, 3 * n);
        (0..3).for_each(|i| triplets.push(i, i, 1.0).unwrap());
        let within = (0..3 * n).filter(|i| i % 3 < 2).map(|i| (i, i + 1, strength));
        for (a, b, weight) in within.chain((3..3 * n).map(|i| (i - 3, i, 1.0))) {
            for (row, column, sign) in [(a, a, 1.0), (b, b, 1.0), (a, b, -1.0), (b, a, -1.0)] {
                triplets.push(row, column, sign * weight).unwrap();
            }
        }
        triplets.into_csr(&Cpu::new(1).unwrap()).unwrap().matrix
    }

    #[test]
    fn values_beyond_single_precision_turn_levels_to_double_with_a_warning() {
        let config = SolverConfig { device: DeviceChoice::Cpu, tolerance: 1e-6, ..SolverConfig::default() };
        let mut solver = LinearSolver::new(&stacks(5, 2.0), &config).unwrap();
        assert!(solver.warnings().is_empty(), "{:?}", solver.warnings());
        solver.refill(&stacks(5, 1e7)).unwrap();
        assert!(solver.warnings().iter().any(|warning| warning.contains("f64")));
        let solution = solver.solve(&[1.0; 15]).unwrap();
        assert!(solution.has_converged());
        assert!((solution.x[1] - 5.0).abs() < 1e-5, "{}", solution.x[1]);
    }
}
