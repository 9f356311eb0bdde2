use std::sync::Arc;

use femtile_comm::Comm;
use femtile_device::Buffer;
use femtile_fem::FemError;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_linalg::{LinalgError, LinearOperator, Preconditioner};
use femtile_matrix_free::MetricEvaluation;
use femtile_mesh::Mesh;
use femtile_sparse::{Csr, ProductMatrix, SparseDevice};

use crate::auto::Solves;
use crate::format::{Formatted, citations_of, formatted, product_matrix};
use crate::method::{SolveDevice, iterate};
use crate::preconditioner::{Level, preconditioner, without_constants};
use crate::right_side::RightSide;
use crate::tensor::FullStart;
use crate::{SolveError, SolverConfig, Stage, Stages};

/// A linear system $A w = b$ with its preconditioner, on a device.
///
/// Rows of Dirichlet unknowns are unit rows with right side zero.
pub struct LinearSystem<'a, D: SolveDevice> {
    pub(crate) operator: Box<dyn LinearOperator<f64, D>>,
    /// The format of the operator: that of a matrix, or `matrix-free`.
    pub(crate) format: String,
    /// None without a matrix.
    pub(crate) format_reason: Option<String>,
    pub(crate) preconditioner: Box<dyn Preconditioner<f64, D>>,
    pub(crate) levels: Vec<Level>,
    pub(crate) right: RightSide<'a, D>,
    /// Keys of the papers behind the operator.
    pub(crate) citations: Vec<&'static str>,
    pub(crate) warnings: Vec<String>,
    /// The evaluation of cell metrics, with the number of cells for each; none with a matrix.
    pub(crate) geometries: Vec<(MetricEvaluation, usize)>,
    /// Full multigrid, if the solve begins with it.
    pub(crate) start: Option<FullStart<D>>,
}

/// An operator and its preconditioner, for many right sides.
pub struct PreconditionedOperator<D: SolveDevice> {
    /// The operator.
    pub operator: Arc<dyn LinearOperator<f64, D>>,
    /// A matrix with its values rounded to 32 bits, if it is in slices: cheaper, and good enough for
    /// corrections.
    pub rounded: Option<Arc<dyn LinearOperator<f64, D>>>,
    /// The preconditioner.
    pub preconditioner: Arc<dyn Preconditioner<f64, D>>,
    /// The format of the operator: that of a matrix, or `matrix-free`.
    pub format: String,
}

impl<D: SolveDevice> From<LinearSystem<'_, D>> for PreconditionedOperator<D> {
    fn from(system: LinearSystem<'_, D>) -> Self {
        let LinearSystem { operator, preconditioner, format, .. } = system;
        Self {
            operator: Arc::from(operator),
            rounded: None,
            preconditioner: Arc::from(preconditioner),
            format,
        }
    }
}

impl<D: SolveDevice> PreconditionedOperator<D> {
    /// Puts a matrix of linear elements into the format of the settings, with their preconditioner.
    pub(crate) fn of_matrix(
        config: &SolverConfig,
        mut matrix: Csr<f64, D>,
        mesh: &Mesh,
    ) -> Result<Self, SolveError> {
        let device = matrix.values().device().clone();
        let (of, mut warnings) = (&config.preconditioner, Vec::new());
        let made = preconditioner(&device, of, Some(mesh), &mut matrix, &mut warnings)?.0;
        let matrix = product_matrix(matrix, config, Solves::Many)?.0;
        let rounded = match &matrix {
            ProductMatrix::Rows(_) => None,
            ProductMatrix::Slices(slices) => Some(Arc::from(D::rounded(slices)?)),
        };
        let format = matrix.format().name();
        let operator = Arc::from(<D as SparseDevice>::into_operator(matrix));
        Ok(Self { operator, rounded, preconditioner: Arc::from(made), format })
    }
}

/// Parts of a linear system that a solution reports.
#[derive(Debug, Clone)]
pub(crate) struct SystemSummary {
    pub format: String,
    pub format_reason: Option<String>,
    pub levels: Vec<Level>,
    pub citations: Vec<&'static str>,
    pub geometries: Vec<(MetricEvaluation, usize)>,
    pub has_full_start: bool,
}

impl<D: SolveDevice> LinearSystem<'_, D> {
    /// Returns the parts that a solution reports.
    pub(crate) fn parts(&self) -> SystemSummary {
        SystemSummary {
            format: self.format.clone(),
            format_reason: self.format_reason.clone(),
            levels: self.levels.clone(),
            citations: self.citations.clone(),
            geometries: self.geometries.clone(),
            has_full_start: self.has_full_start(),
        }
    }
}

impl<'a, D: SolveDevice> LinearSystem<'a, D> {
    /// Returns the system with a sparse matrix, in the format and with the preconditioner of the settings; `mesh` is that of
    /// linear elements.
    pub(crate) fn of_matrix(
        device: &D,
        config: &SolverConfig,
        (mut matrix, is_pure_neumann): (Csr<f64, D>, bool),
        mesh: Option<&Mesh>,
        right: RightSide<'a, D>,
    ) -> Result<Self, SolveError> {
        let mut warnings = Vec::new();
        let made = preconditioner(device, &config.preconditioner, mesh, &mut matrix, &mut warnings)?;
        let (preconditioner, levels) = without_constants(device, made, matrix.n_rows(), is_pure_neumann)?;
        let Formatted { operator, format, reason } = formatted(matrix, config, Solves::One)?;
        let citations = citations_of(format, &levels);
        Ok(Self {
            operator,
            format: format.name(),
            format_reason: Some(reason),
            preconditioner,
            levels,
            right,
            citations,
            warnings,
            geometries: Vec::new(),
            start: None,
        })
    }
}

impl<D: SolveDevice> LinearSystem<'_, D> {
    /// Returns the operator $A$.
    pub fn operator(&self) -> &dyn LinearOperator<f64, D> {
        self.operator.as_ref()
    }

    /// Returns the format of the operator: that of a matrix, or `matrix-free`.
    pub fn format(&self) -> &str {
        &self.format
    }

    /// Returns the evaluation of cell metrics, with the number of cells for each; none with a matrix.
    pub fn geometries(&self) -> &[(MetricEvaluation, usize)] {
        &self.geometries
    }

    /// Returns the reason for the format; none without a matrix.
    pub fn format_reason(&self) -> Option<&str> {
        self.format_reason.as_deref()
    }

    /// Returns the preconditioner.
    pub fn preconditioner(&self) -> &dyn Preconditioner<f64, D> {
        self.preconditioner.as_ref()
    }

    /// Returns the right side $b$; of several components, their values alternate.
    pub fn rhs(&self) -> &Buffer<f64, D> {
        self.right.values()
    }

    /// Returns the levels of multigrid, the finest first; none without multigrid.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// Returns the warnings about the operator and the preconditioner.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns whether the solution is determined up to a constant only.
    pub fn is_pure_neumann(&self) -> bool {
        self.right.is_pure_neumann()
    }

    /// Returns whether the solve begins with full multigrid.
    pub fn has_full_start(&self) -> bool {
        self.start.is_some()
    }

    /// Returns the iterate that the solve begins from: zero, or that of full multigrid.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn start(&self) -> Result<Buffer<f64, D>, SolveError> {
        let b = self.rhs();
        Ok(match &self.start {
            Some(start) => start.iterate(self.operator(), b)?,
            None => Buffer::zeros(b.device(), b.len()).map_err(LinalgError::from)?,
        })
    }

    /// Solves from [`LinearSystem::start`].
    ///
    /// # Errors
    /// Errors of the method and the device; not converging is an outcome.
    pub fn solve(
        &self,
        config: &SolverConfig,
        stages: &mut Stages<'_>,
    ) -> Result<(Buffer<f64, D>, CgOutcome), SolveError> {
        stages.begin(Stage::Solve)?;
        let mut w = self.start()?;
        let outcome = self.iterate(config, &mut w, stages)?;
        Ok((w, outcome))
    }

    /// Solves from `w`; the stage has begun.
    pub(crate) fn iterate(
        &self,
        config: &SolverConfig,
        w: &mut Buffer<f64, D>,
        stages: &mut Stages<'_>,
    ) -> Result<CgOutcome, SolveError> {
        let system = (self.operator(), self.preconditioner());
        iterate(config, &Comm::alone(), w, system, self.rhs(), stages)
    }

    /// Returns each component of u from a solution of the system: Dirichlet values put in, a free mean
    /// removed.
    ///
    /// # Errors
    /// [`FemError::Length`] if `w` does not belong to the system.
    pub fn solutions(&self, w: &Buffer<f64, D>) -> Result<Vec<Vec<f64>>, FemError> {
        self.right.solutions(w)
    }
}
