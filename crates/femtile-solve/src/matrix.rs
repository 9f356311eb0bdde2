use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use femtile_amg::{AmgError, NullVector};
use femtile_comm::Comm;
use femtile_device::{Buffer, Cpu, Cuda, Device, parallel};
use femtile_linalg::krylov::Stop;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_linalg::{LinalgError, LinearOperator, Preconditioner, need};
use femtile_sparse::csr::{Csr, Offsets};
use femtile_sparse::{Format, ProductMatrix};

use crate::auto::Solves;
use crate::check::graph_error;
use crate::device::{Choice, Chosen};
use crate::format::product_matrix;
use crate::matrix_preconditioner::{Found, MatrixPreconditioner};
use crate::method::{SolveDevice, iterate};
use crate::preconditioner::Level;
use crate::saddle_point::{Approximated, BlockTriangular, Complement};
use crate::{
    AmgOptions, DeviceChoice, Method, PreconditionerConfig, Progress, Silent, SolveError, SolverConfig,
    Stage, Stages,
};

/// A solver for a symmetric positive definite matrix, set up once for many right sides.
///
/// If the whole diagonal is negative, $-A$ is set up instead: negative definite matrices are solved as well.
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
    /// The entries of all vectors row by row, as multigrid takes them.
    near_nullspace: Option<Vec<f64>>,
    /// A hash of the pattern.
    pattern: u64,
    cpu: Cpu,
    on: On,
}

/// Properties of a matrix that a solver cannot see from its entries.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Given<'a> {
    /// Vectors on which it is small, one after the other.
    pub near_nullspace: Option<&'a [f64]>,
    /// The matrix that multigrid is made of, if it is another.
    pub approximation: Option<&'a Approximated>,
}

enum On {
    Cpu(OnDevice<Cpu>),
    Cuda(OnDevice<Cuda>),
}

impl On {
    /// Says whether the matrix is the negative of the one given.
    fn set_negative(&mut self, is_negative: bool) {
        match self {
            Self::Cpu(on) => on.is_negative = is_negative,
            Self::Cuda(on) => on.is_negative = is_negative,
        }
    }
}

/// Limits of one solve: it ends when it meets the tolerance, or has no iterations or time left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SolveLimits {
    /// As [`SolverConfig::tolerance`].
    pub tolerance: f64,
    /// As [`SolverConfig::max_iterations`].
    pub max_iterations: usize,
    /// As [`SolverConfig::time_limit`].
    pub time_limit: Option<Duration>,
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
    /// Returns whether the solve reached its tolerance.
    pub fn has_converged(&self) -> bool {
        self.outcome.stop == Stop::Converged
    }
}

impl LinearSolver {
    /// Sets a solver up for a matrix, on the device of the settings.
    ///
    /// # Errors
    /// [`SolveError::Setting`] if a setting does not go with a matrix, [`SolveError::Amg`] if multigrid
    /// cannot be set up, [`SolveError::NotDefinite`] if the method needs a positive diagonal,
    /// [`SolveError::Linalg`] for a matrix that is not square.
    pub fn new(a: &Csr<f64, Cpu>, config: &SolverConfig) -> Result<Self, SolveError> {
        Self::build(a, Given::default(), config, None)
    }

    /// As [`LinearSolver::new`], with vectors on which the matrix is small: what algebraic multigrid keeps exact on its
    /// coarse levels, one vector after the other, such as the rigid motions of elasticity.
    ///
    /// # Errors
    /// As [`LinearSolver::new`]; if a length is not a multiple of the number of rows.
    pub fn with_near_nullspace(
        a: &Csr<f64, Cpu>,
        vectors: &[f64],
        config: &SolverConfig,
    ) -> Result<Self, SolveError> {
        Self::build(a, Given { near_nullspace: Some(vectors), approximation: None }, config, None)
    }

    /// As [`LinearSolver::with_near_nullspace`], on a device that was chosen if there is one. With an approximation the solver is not
    /// to be refilled.
    pub(crate) fn build(
        a: &Csr<f64, Cpu>,
        Given { near_nullspace, approximation }: Given<'_>,
        config: &SolverConfig,
        choice: Option<Choice>,
    ) -> Result<Self, SolveError> {
        let is_chosen = config.preconditioner == PreconditionerConfig::Auto;
        let config = &resolved(config);
        config.check()?;
        crate::ranks::refuse(config)?;
        if a.n_rows() != a.n_cols() {
            let message = format!("{} × {} is not square", a.n_rows(), a.n_cols());
            return Err(LinalgError::Setting { field: "matrix", message }.into());
        }
        check_preconditioner(config)?;
        let mut warnings = Vec::new();
        let negated = negated(a, config, &mut warnings)?;
        let a = negated.as_ref().unwrap_or(a);
        let near_nullspace = near_nullspace.map(|vectors| by_rows(vectors, a.n_rows()));
        let near_nullspace = near_nullspace.as_deref();
        let cpu = Cpu::new(config.threads)?;
        let pattern = cpu.install(|| pattern_of(a));
        let choice = match choice {
            Some(choice) => choice,
            None => config.device.choose(config.device.open()?, a.n_rows(), cpu.threads()),
        };
        let (mut reason, mut on) = (choice.reason, None);
        if let Chosen::Cuda(cuda) = choice.device {
            let cuda = config.device.with_overflow(&cuda);
            let of = (near_nullspace, approximation);
            match OnDevice::new(&cuda, a, of, (config, is_chosen), &mut warnings) {
                Ok(made) => on = Some(On::Cuda(made)),
                Err(error) if config.device == DeviceChoice::Auto && error.is_device_trouble() => {
                    reason = error.to_string();
                    warnings.push(format!("solved on the CPU: {reason}"));
                }
                Err(error) => return Err(error),
            }
        }
        let mut on = match on {
            Some(on) => on,
            None => {
                let config = (config, is_chosen);
                let of = (near_nullspace, approximation);
                let made = cpu.install(|| OnDevice::new(&cpu, a, of, config, &mut warnings));
                On::Cpu(made?)
            }
        };
        on.set_negative(negated.is_some());
        let near_nullspace = near_nullspace.map(<[f64]>::to_vec);
        let config = config.clone();
        Ok(Self { config, device_reason: reason, warnings, near_nullspace, pattern, cpu, on })
    }

    /// Solves $A x = b$ from zero.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] if the length of `b` is not that of a row, or an entry is not finite; not
    /// converging is an outcome.
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
        self.solve_as(&self.config, x, b, progress)
    }

    /// As [`LinearSolver::solve_from`], with other limits than those of the setup.
    ///
    /// # Errors
    /// As [`LinearSolver::solve`]; [`SolveError::Setting`] for a tolerance that is none.
    pub fn solve_within(
        &self,
        limits: SolveLimits,
        x: Vec<f64>,
        b: &[f64],
        progress: &mut dyn Progress,
    ) -> Result<LinearSolution, SolveError> {
        self.solve_as(&self.within(limits)?, x, b, progress)
    }

    /// Returns the settings with limits of one solve.
    fn within(&self, limits: SolveLimits) -> Result<SolverConfig, SolveError> {
        let SolveLimits { tolerance, max_iterations, time_limit } = limits;
        let config = SolverConfig { tolerance, max_iterations, time_limit, ..self.config.clone() };
        config.check()?;
        Ok(config)
    }

    /// Returns the GPU that holds the matrix; none on a processor.
    pub fn gpu(&self) -> Option<&Cuda> {
        match &self.on {
            On::Cpu(_) => None,
            On::Cuda(on) => Some(on.matrix.device()),
        }
    }

    /// Solves from the guess in `x`, both vectors in the memory of [`LinearSolver::gpu`]; the solution replaces the guess.
    ///
    /// # Errors
    /// As [`LinearSolver::solve_within`], but entries that are not finite end the solve;
    /// [`SolveError::Setting`] if the matrix is not on a GPU.
    pub fn solve_on_gpu(
        &self,
        limits: SolveLimits,
        x: &mut Buffer<f64, Cuda>,
        b: &Buffer<f64, Cuda>,
        progress: &mut dyn Progress,
    ) -> Result<CgOutcome, SolveError> {
        let On::Cuda(on) = &self.on else {
            return Err(SolveError::solver("device", "the matrix is not on a GPU: set the solver up there"));
        };
        on.solve_in_place(&self.within(limits)?, x, b, progress)
    }

    /// Applies the preconditioner: $z = M^{-1} r$.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] if the length of `r` is not that of a row.
    pub fn precondition(&self, r: &[f64]) -> Result<Vec<f64>, SolveError> {
        match &self.on {
            On::Cpu(on) => self.cpu.install(|| on.precondition(r)),
            On::Cuda(on) => on.precondition(r),
        }
    }

    fn solve_as(
        &self,
        config: &SolverConfig,
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
        match &self.on {
            On::Cpu(on) => self.cpu.install(|| on.solve(config, x, b, progress)),
            On::Cuda(on) => on.solve(config, x, b, progress),
        }
    }

    /// Replaces the values on the same pattern: multigrid keeps its aggregates. If the values are refused,
    /// the solver stays unchanged.
    ///
    /// # Errors
    /// [`SolveError::Linalg`] if the pattern is another one; as [`LinearSolver::new`].
    pub fn refill(&mut self, a: &Csr<f64, Cpu>) -> Result<(), SolveError> {
        if self.cpu.install(|| pattern_of(a)) != self.pattern {
            let message = "has another pattern than the one that the solver was set up for".into();
            return Err(LinalgError::Setting { field: "matrix", message }.into());
        }
        let mut warnings = Vec::new();
        let negated = negated(a, &self.config, &mut warnings)?;
        let a = negated.as_ref().unwrap_or(a);
        let near = self.near_nullspace.as_deref();
        match &mut self.on {
            On::Cpu(on) => self.cpu.install(|| on.refill(a, near, &mut warnings)),
            On::Cuda(on) => on.refill(a, near, &mut warnings),
        }?;
        self.on.set_negative(negated.is_some());
        // Many matrices one after the other may be told the same.
        warnings.retain(|warning| !self.warnings.contains(warning));
        self.warnings.append(&mut warnings);
        Ok(())
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

    /// Returns the name of the preconditioner, as in case files: if it was the choice of the library, the one
    /// chosen.
    pub fn preconditioner(&self) -> &'static str {
        match &self.on {
            On::Cpu(on) => on.preconditioner.name(),
            On::Cuda(on) => on.preconditioner.name(),
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

/// Returns the settings with an automatic choice resolved: algebraic multigrid if the method supports it.
pub(crate) fn resolved(config: &SolverConfig) -> SolverConfig {
    let takes_multigrid = matches!(config.method, Method::Cg | Method::PipelinedCg);
    let mut preconditioner = match &config.preconditioner {
        PreconditionerConfig::Auto if takes_multigrid => PreconditionerConfig::Amg(AmgOptions::default()),
        PreconditionerConfig::Auto => PreconditionerConfig::Jacobi,
        given => given.clone(),
    };
    preconditioner.take_format(config.format);
    SolverConfig { preconditioner, ..config.clone() }
}

/// Refuses preconditioners that a matrix without a mesh does not have.
pub(crate) fn check_preconditioner(config: &SolverConfig) -> Result<(), SolveError> {
    if let Some(name) = config.preconditioner.of_cells() {
        let message = format!("{name} is made from the cells of a mesh: use \"amg\" for a matrix");
        return Err(SolveError::solver("preconditioner", message));
    }
    if config.preconditioner.needs_graph_of_mesh() {
        return Err(graph_error("a matrix comes without a mesh: use \"matrix\"".into()));
    }
    Ok(())
}

/// Returns −A if all of the diagonal of A is negative and the method or the preconditioner needs a positive
/// one, and says so.
fn negated(
    a: &Csr<f64, Cpu>,
    config: &SolverConfig,
    warnings: &mut Vec<String>,
) -> Result<Option<Csr<f64, Cpu>>, SolveError> {
    let needs_positive = !matches!(config.method, Method::Gmres { .. })
        || matches!(config.preconditioner, PreconditionerConfig::Amg(_));
    let is_negative = |row| a.row(row).any(|(column, value)| column == row && value < 0.0);
    if !needs_positive || a.n_rows() == 0 || !(0..a.n_rows()).all(is_negative) {
        return Ok(None);
    }
    warnings.push("the diagonal is negative: −A x = −b is solved in place of A x = b".into());
    let values = a.values().as_slice().iter().map(|value| -value).collect();
    Ok(Some(a.with_values(Buffer::from_vec(a.values().device(), values)?)?))
}

/// Numbers of a pattern that are hashed together, independent of the number of threads.
const PIECE: usize = 1 << 16;

/// Returns a hash of the offsets and columns of a matrix.
fn pattern_of(a: &Csr<f64, Cpu>) -> u64 {
    let mut hasher = DefaultHasher::new();
    a.n_cols().hash(&mut hasher);
    match a.offsets() {
        Offsets::Narrow(offsets) => hash_of(offsets.as_slice()).hash(&mut hasher),
        Offsets::Wide(offsets) => hash_of(offsets.as_slice()).hash(&mut hasher),
    }
    hash_of(a.columns().as_slice()).hash(&mut hasher);
    hasher.finish()
}

/// Returns the hashes of the pieces of a list.
fn hash_of<N: Hash + Sync>(numbers: &[N]) -> Vec<u64> {
    parallel::map_chunks(numbers, PIECE, |_, piece| {
        let mut hasher = DefaultHasher::new();
        piece.hash(&mut hasher);
        hasher.finish()
    })
}

/// Returns the entries of vectors of `n` entries, one after the other, row by row; others as they are.
fn by_rows(vectors: &[f64], n: usize) -> Vec<f64> {
    if n == 0 || !vectors.len().is_multiple_of(n) {
        return vectors.to_vec();
    }
    (0..n).flat_map(|row| vectors.iter().skip(row).step_by(n).copied()).collect()
}

/// Returns the Euclidean norm, without overflow.
fn norm(v: &[f64]) -> f64 {
    let largest = v.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    if largest == 0.0 { 0.0 } else { largest * v.iter().map(|x| (x / largest).powi(2)).sum::<f64>().sqrt() }
}

/// A matrix and its preconditioner on a device.
struct OnDevice<D: SolveDevice> {
    matrix: ProductMatrix<f64, D>,
    /// Whether the matrix is the negative of the one given.
    is_negative: bool,
    format_reason: String,
    preconditioner: MatrixPreconditioner<D>,
    /// Of a saddle point.
    complement: Option<Arc<Complement<D>>>,
    /// What multigrid found in the null space, which right sides must not have a part in.
    nullspace: Vec<NullVector>,
}

impl<D: SolveDevice> OnDevice<D> {
    /// Sets up with these settings, and whether the preconditioner is the choice of the library.
    fn new(
        device: &D,
        a: &Csr<f64, Cpu>,
        (near_nullspace, approximation): (Option<&[f64]>, Option<&Approximated>),
        (config, is_chosen): (&SolverConfig, bool),
        warnings: &mut Vec<String>,
    ) -> Result<Self, SolveError> {
        let mut matrix = a.copy_to(device)?;
        let by_aggregation =
            approximation.filter(|of| !of.is_symmetric).map(|of| of.matrix.as_ref().unwrap_or(a));
        let complement = approximation.and_then(|of| of.complement.as_ref());
        let approximation =
            approximation.and_then(|of| of.matrix.as_ref()).filter(|_| by_aggregation.is_none());
        let complement = complement.map(|values| Complement::new(device, values)).transpose()?;
        let mut approximation = approximation.map(|matrix| matrix.copy_to(device)).transpose()?;
        let needs_no_definiteness = matches!(config.method, Method::Gmres { .. });
        let is_replaced = by_aggregation.is_some() || approximation.is_some();
        let mut preconditioner = match (&config.preconditioner, by_aggregation) {
            (PreconditionerConfig::Amg(_), Some(of)) => MatrixPreconditioner::by_aggregation(of)?,
            (PreconditionerConfig::Jacobi, _) if needs_no_definiteness => {
                MatrixPreconditioner::of_magnitudes(&matrix)?
            }
            (given, _) => {
                let of = approximation.as_mut().unwrap_or(&mut matrix);
                MatrixPreconditioner::new(of, near_nullspace, given, warnings).map_err(for_matrix)?
            }
        };
        let complexity = preconditioner.found().map_or(1.0, |found| found.operator_complexity);
        let has_motions = near_nullspace.is_some_and(|vectors| vectors.len() > a.n_rows());
        let most = if has_motions { MOST_COMPLEX_MOTIONS } else { MOST_COMPLEX };
        if complexity > most {
            let told = format!(
                "the levels of multigrid have {complexity:.1} times the entries of the matrix (operator complexity)"
            );
            if is_chosen {
                warnings.push(format!("{told}: the diagonal is taken in their place"));
                let jacobi = &PreconditionerConfig::Jacobi;
                preconditioner =
                    MatrixPreconditioner::new(&mut matrix, None, jacobi, warnings).map_err(for_matrix)?;
            } else {
                warnings.push(format!(
                    "{told}: preconditioner \"jacobi\" takes less memory, and may take less time"
                ));
            }
        }
        let nullspace = match is_replaced {
            // Its null space is not that of the matrix.
            true => Vec::new(),
            false => nullspace_of(&preconditioner, a, near_nullspace, warnings)?,
        };
        let (matrix, format_reason) = product_matrix(matrix, config, Solves::One)?;
        let complement = complement.map(Arc::new);
        Ok(Self { matrix, is_negative: false, format_reason, preconditioner, complement, nullspace })
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
        let outcome = self.solve_in_place(config, &mut x, &b, progress)?;
        Ok(LinearSolution { x: x.to_host()?, outcome })
    }

    fn solve_in_place(
        &self,
        config: &SolverConfig,
        x: &mut Buffer<f64, D>,
        b: &Buffer<f64, D>,
        progress: &mut dyn Progress,
    ) -> Result<CgOutcome, SolveError> {
        let (product, inner) = (D::matrix_operator(&self.matrix), self.preconditioner.as_dyn());
        let triangular = self.complement.as_ref().map(|complement| {
            let complement = Arc::clone(complement);
            BlockTriangular { inner, product, complement }
        });
        let preconditioner = triangular.as_ref().map_or(inner, |own| own as &dyn Preconditioner<f64, D>);
        let parts = (product, preconditioner);
        let projected = if self.nullspace.is_empty() { None } else { Some(self.projected(b)?) };
        let b = projected.as_ref().unwrap_or(b);
        let stages = &mut Stages::new(progress);
        stages.begin(Stage::Solve)?;
        let negated = self.negated(b)?;
        iterate(config, &Comm::alone(), x, parts, negated.as_ref().unwrap_or(b), stages)
    }

    /// Returns −b if the matrix is −A.
    fn negated(&self, b: &Buffer<f64, D>) -> Result<Option<Buffer<f64, D>>, LinalgError> {
        if !self.is_negative {
            return Ok(None);
        }
        let mut negated = Buffer::zeros(b.device(), b.len())?;
        b.device().combine(&mut negated, &[(-1.0, b)])?;
        Ok(Some(negated))
    }

    fn precondition(&self, r: &[f64]) -> Result<Vec<f64>, SolveError> {
        let device = self.matrix.device();
        let (mut z, r_norm) = (Buffer::zeros(device, r.len())?, norm(r));
        let preconditioner = self.preconditioner.as_dyn();
        preconditioner.set_residual_norm(r_norm);
        let r = Buffer::from_host(device, r)?;
        preconditioner.apply(&mut z, self.negated(&r)?.as_ref().unwrap_or(&r))?;
        Ok(z.to_host()?)
    }

    fn refill(
        &mut self,
        a: &Csr<f64, Cpu>,
        near_nullspace: Option<&[f64]>,
        warnings: &mut Vec<String>,
    ) -> Result<(), SolveError> {
        match &mut self.matrix {
            ProductMatrix::Rows(rows) => {
                let refilled =
                    rows.with_values(Buffer::from_host(rows.values().device(), a.values().as_slice())?)?;
                self.preconditioner.refill(&refilled, near_nullspace, warnings).map_err(for_matrix)?;
                *rows = refilled;
            }
            ProductMatrix::Slices(slices) => {
                let rows = a.copy_to(slices.device())?;
                self.preconditioner.refill(&rows, near_nullspace, warnings).map_err(for_matrix)?;
                D::refill_slices(slices, &rows)?;
            }
        }
        self.nullspace = nullspace_of(&self.preconditioner, a, near_nullspace, warnings)?;
        Ok(())
    }

    /// Returns a right side without its part in the null space.
    fn projected(&self, b: &Buffer<f64, D>) -> Result<Buffer<f64, D>, SolveError> {
        need("b", self.matrix.n_rows(), b.len())?;
        let mut projected = b.to_host()?;
        for vector in &self.nullspace {
            vector.project(&mut projected);
        }
        Ok(Buffer::from_vec(b.device(), projected)?)
    }
}

/// Levels that have more entries together, relative to the matrix, are not worth their cycles.
const MOST_COMPLEX: f64 = 3.0;
/// With several vectors as near-nullspace, levels of thin bodies have more entries, and the diagonal takes thousands of iterations.
const MOST_COMPLEX_MOTIONS: f64 = 8.0;

/// Returns the null space of a matrix in which multigrid has found one, and says so, and what else it found.
fn nullspace_of<D: SolveDevice>(
    preconditioner: &MatrixPreconditioner<D>,
    a: &Csr<f64, Cpu>,
    near_nullspace: Option<&[f64]>,
    warnings: &mut Vec<String>,
) -> Result<Vec<NullVector>, SolveError> {
    let Some(Found { config, n_null, stalled, .. }) = preconditioner.found() else { return Ok(Vec::new()) };
    if let Some(n_rows) = stalled {
        let of = a.n_rows();
        warnings.push(format!(
            "coarsening ended at {n_rows} of {of} rows, which are smoothed and not solved: no threshold of strong connections \
             makes them fewer; another block size or near-nullspace, or preconditioner \"jacobi\", may do better"
        ));
    }
    if n_null == 0 {
        return Ok(Vec::new());
    }
    let vectors = femtile_amg::nullspace(a, near_nullspace, config)?;
    if !vectors.is_empty() {
        warnings.push(format!(
            "the matrix is singular: the parts of right sides along {} vectors of its null space are removed, and a solution \
             is one of many",
            vectors.len()
        ));
    }
    Ok(vectors)
}

/// Returns an error about a diagonal with advice for a matrix without a mesh.
fn for_matrix(error: SolveError) -> SolveError {
    match error {
        SolveError::Linalg(LinalgError::Diagonal { row, value })
        | SolveError::Amg(AmgError::Diagonal { row, value }) => SolveError::NotDefinite { row, value },
        other => other,
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

    #[test]
    fn limits_of_one_solve_leave_those_of_the_solver_as_they_are() {
        let config = SolverConfig {
            device: DeviceChoice::Cpu,
            preconditioner: PreconditionerConfig::Jacobi,
            ..SolverConfig::default()
        };
        let solver = LinearSolver::new(&stacks(9, 2.0), &config).unwrap();
        let limits = SolveLimits { tolerance: 1e-3, max_iterations: 2, time_limit: None };
        let short = solver.solve_within(limits, vec![0.0; 27], &[1.0; 27], &mut Silent).unwrap();
        assert_eq!((short.outcome.iterations, short.outcome.stop), (2, Stop::MaxIterations));
        assert!(solver.solve(&[1.0; 27]).unwrap().has_converged());
        let wrong = SolveLimits { tolerance: 2.0, ..limits };
        assert!(solver.solve_within(wrong, vec![0.0; 27], &[1.0; 27], &mut Silent).is_err());
    }

    #[test]
    fn the_preconditioner_is_applied_alike_at_any_scale() {
        let config = SolverConfig { device: DeviceChoice::Cpu, ..SolverConfig::default() };
        let solver = LinearSolver::new(&stacks(5, 2.0), &config).unwrap();
        let z = solver.precondition(&[1.0; 15]).unwrap();
        let large = solver.precondition(&[1e200; 15]).unwrap();
        for (z, large) in z.iter().zip(large) {
            assert!((large / 1e200 - z).abs() < 1e-5 * z.abs(), "{z} {large}");
        }
        assert!(solver.precondition(&[0.0; 15]).unwrap().iter().all(|z| *z == 0.0));
        assert!(solver.precondition(&[1.0; 14]).is_err());
    }
}
