use std::sync::Arc;

use femtile_comm::{Comm, DistributedMatrix, Halo, OwnedRows, RankKernels};
use femtile_device::Buffer;
use femtile_fem::FemError;
use femtile_linalg::krylov::cg::CgOutcome;
use femtile_linalg::{LinalgError, LinearOperator, Preconditioner};
use femtile_matrix_free::MetricEvaluation;
use femtile_mesh::Mesh;
use femtile_sparse::{Csr, Format, ProductMatrix, SparseDevice};

use crate::auto::Solves;
use crate::format::{Formatted, citations_of, formatted, product_matrix};
use crate::method::{SolveDevice, iterate};
use crate::preconditioner::{Level, RowsOfProblem, preconditioning};
use crate::right_side::RightSide;
use crate::solution::{Found, warning_of_outcome};
use crate::tensor::FullStart;
use crate::{SolveError, SolverConfig, Stage, Stages};

/// A linear system $A w = b$ with its preconditioner, on a device: all of its rows, or those that a rank owns. Functions are
/// then collective.
///
/// Rows of Dirichlet unknowns are unit rows with right side zero.
pub struct LinearSystem<'a, D: SolveDevice> {
    pub(crate) prepared: Prepared<D>,
    pub(crate) right: RightSide<'a, D>,
    /// Full multigrid, if the solve begins with it.
    pub(crate) start: Option<FullStart<D>>,
    /// The ranks that own the rows.
    pub(crate) comm: Comm,
}

/// An operator with its preconditioner, and what a report says of them.
pub(crate) struct Prepared<D: SolveDevice> {
    pub operator: Box<dyn LinearOperator<f64, D>>,
    pub preconditioner: Box<dyn Preconditioner<f64, D>>,
    pub summary: SystemSummary,
    /// Warnings about the operator and the preconditioner.
    pub warnings: Vec<String>,
}

/// Parts of a linear system that a solution reports.
#[derive(Debug, Clone)]
pub(crate) struct SystemSummary {
    /// The format of the operator: that of a matrix, or `matrix-free`.
    pub format: String,
    /// None without a matrix.
    pub format_reason: Option<String>,
    pub levels: Vec<Level>,
    /// Keys of the papers behind the operator.
    pub citations: Vec<&'static str>,
    /// The evaluation of cell metrics, with the number of cells for each; none with a matrix.
    pub geometries: Vec<(MetricEvaluation, usize)>,
    pub has_full_start: bool,
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
        let Prepared { operator, preconditioner, summary, .. } = system.prepared;
        Self {
            operator: Arc::from(operator),
            rounded: None,
            preconditioner: Arc::from(preconditioner),
            format: summary.format,
        }
    }
}

impl<D: SolveDevice> PreconditionedOperator<D> {
    /// Puts a matrix of linear elements into the format of the settings, with their preconditioner. Collective.
    ///
    /// There is a rounded operator if a rank has its matrix in slices; other matrices are not rounded in it.
    pub(crate) fn of_matrix(
        config: &SolverConfig,
        mut matrix: OwnedRows<f64, D>,
        rows: &RowsOfProblem<'_>,
    ) -> Result<Self, SolveError> {
        let made = preconditioning(&config.preconditioner, &mut matrix, rows, &mut Vec::new())?.0;
        let OwnedRows { own, border } = matrix;
        let own = product_matrix(own, config, Solves::Many)?.0;
        let format = own.format().name();
        let [has_slices] = rows.halo.comm().any([matches!(own, ProductMatrix::Slices(_))])?;
        let rounded = match has_slices {
            true => Some(Arc::from(over_ranks(
                rounded(&own)?,
                border.copy_to(border.values().device())?,
                &rows.halo,
            )?)),
            false => None,
        };
        let operator = over_ranks(<D as SparseDevice>::into_operator(own), border, &rows.halo)?;
        Ok(Self { operator: Arc::from(operator), rounded, preconditioner: Arc::from(made), format })
    }
}

/// The matrix with values rounded to 32 bits if it is in sliced storage, else unchanged.
fn rounded<D: SolveDevice>(
    matrix: &ProductMatrix<f64, D>,
) -> Result<Box<dyn LinearOperator<f64, D>>, LinalgError> {
    Ok(match matrix {
        ProductMatrix::Rows(rows) => {
            let copy = rows.copy_to(rows.values().device())?;
            <D as SparseDevice>::into_operator(ProductMatrix::Rows(copy))
        }
        ProductMatrix::Slices(slices) => D::rounded(slices)?,
    })
}

/// Returns the product with owned rows from that with owned columns and the matrix of ghost columns. Collective.
pub(crate) fn over_ranks<D: RankKernels<f64>>(
    own: Box<dyn LinearOperator<f64, D>>,
    border: Csr<f64, D>,
    halo: &Arc<Halo>,
) -> Result<Box<dyn LinearOperator<f64, D>>, LinalgError> {
    match halo.comm().n_ranks() {
        1 => Ok(own),
        _ => Ok(Box::new(DistributedMatrix::new(own, border, Arc::clone(halo))?)),
    }
}

impl SystemSummary {
    /// Describes a matrix in a format, and the levels of its preconditioner.
    pub fn of_matrix(format: Format, reason: String, levels: Vec<Level>) -> Self {
        Self {
            format: format.name(),
            format_reason: Some(reason),
            citations: citations_of(format, &levels),
            levels,
            geometries: Vec::new(),
            has_full_start: false,
        }
    }

    /// Describes a matrix that is refilled in each iteration.
    pub fn of_refilled_matrix(levels: Vec<Level>, citations: Vec<&'static str>) -> Self {
        Self {
            format: "csr".into(),
            format_reason: Some("the matrix is refilled in each iteration".into()),
            levels,
            citations,
            geometries: Vec::new(),
            has_full_start: false,
        }
    }

    /// Describes an operator without a matrix.
    pub fn without_matrix(levels: Vec<Level>, geometries: Vec<(MetricEvaluation, usize)>) -> Self {
        Self {
            format: "matrix-free".into(),
            format_reason: None,
            levels,
            citations: vec!["kronbichler2022"],
            geometries,
            has_full_start: false,
        }
    }
}

impl<D: SolveDevice> Prepared<D> {
    /// Puts the owned rows of a matrix into the format of the settings, with their preconditioner. Collective.
    pub fn of_matrix(
        config: &SolverConfig,
        mut matrix: OwnedRows<f64, D>,
        rows: &RowsOfProblem<'_>,
        solves: Solves,
    ) -> Result<Self, SolveError> {
        let mut warnings = Vec::new();
        let (preconditioner, levels) =
            preconditioning(&config.preconditioner, &mut matrix, rows, &mut warnings)?;
        let Formatted { operator, format, reason } = formatted(matrix.own, config, solves)?;
        let operator = over_ranks(operator, matrix.border, &rows.halo)?;
        let summary = SystemSummary::of_matrix(format, reason, levels);
        Ok(Self { operator, preconditioner, summary, warnings })
    }
}

impl<'a, D: SolveDevice> LinearSystem<'a, D> {
    /// Makes the system of the owned rows of a matrix, in the format and with the preconditioner of the settings. Collective.
    pub(crate) fn of_matrix(
        config: &SolverConfig,
        matrix: OwnedRows<f64, D>,
        rows: &RowsOfProblem<'_>,
        right: RightSide<'a, D>,
    ) -> Result<Self, SolveError> {
        let prepared = Prepared::of_matrix(config, matrix, rows, Solves::One)?;
        Ok(Self { prepared, right, start: None, comm: rows.halo.comm().clone() })
    }

    /// Makes the system of all rows of a matrix, as [`LinearSystem::of_matrix`] does; `mesh` is that of linear elements.
    pub(crate) fn of_whole_matrix(
        config: &SolverConfig,
        matrix: Csr<f64, D>,
        mesh: Option<&Mesh>,
        right: RightSide<'a, D>,
    ) -> Result<Self, SolveError> {
        let is_pure_neumann = right.is_pure_neumann;
        let rows = RowsOfProblem { is_pure_neumann, mesh, ..RowsOfProblem::all(matrix.n_rows()) };
        Self::of_matrix(config, OwnedRows::whole(matrix)?, &rows, right)
    }
}

impl<D: SolveDevice> LinearSystem<'_, D> {
    /// Returns the operator $A$.
    pub fn operator(&self) -> &dyn LinearOperator<f64, D> {
        self.prepared.operator.as_ref()
    }

    /// Returns the format of the operator: that of a matrix, or `matrix-free`.
    pub fn format(&self) -> &str {
        &self.prepared.summary.format
    }

    /// Returns the evaluation of cell metrics, with the number of cells for each; none with a matrix.
    pub fn geometries(&self) -> &[(MetricEvaluation, usize)] {
        &self.prepared.summary.geometries
    }

    /// Returns the reason for the format; none without a matrix.
    pub fn format_reason(&self) -> Option<&str> {
        self.prepared.summary.format_reason.as_deref()
    }

    /// Returns the preconditioner.
    pub fn preconditioner(&self) -> &dyn Preconditioner<f64, D> {
        self.prepared.preconditioner.as_ref()
    }

    /// Returns the right side $b$; of several components, their values alternate.
    pub fn rhs(&self) -> &Buffer<f64, D> {
        &self.right.values
    }

    /// Returns the levels of multigrid, the finest first; none without multigrid.
    pub fn levels(&self) -> &[Level] {
        &self.prepared.summary.levels
    }

    /// Returns the warnings about the operator and the preconditioner.
    pub fn warnings(&self) -> &[String] {
        &self.prepared.warnings
    }

    /// Returns whether the solution is determined up to a constant only.
    pub fn is_pure_neumann(&self) -> bool {
        self.right.is_pure_neumann
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

    /// Solves from [`LinearSystem::start`]. All ranks that own rows end in the same iteration.
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
        iterate(config, &self.comm, w, system, self.rhs(), stages)
    }

    /// Describes a solve with these settings that ended with `w`.
    pub(crate) fn found(
        &self,
        w: &Buffer<f64, D>,
        outcome: CgOutcome,
        config: &SolverConfig,
    ) -> Result<Found, FemError> {
        let mut warnings = Vec::from_iter(warning_of_imbalance(self.right.imbalance));
        warnings.extend_from_slice(&self.prepared.warnings);
        warnings.extend(warning_of_outcome(config, &outcome));
        let (components, summary) = (self.solutions(w)?, self.prepared.summary.clone());
        Ok(Found { components, outcome, summary, config: config.clone(), warnings, nonlinear: None })
    }

    /// Returns each component of u from a solution of the system, at its unknowns: Dirichlet values put in, a free mean removed
    /// if the system has all rows.
    ///
    /// # Errors
    /// [`FemError::Length`] if `w` does not belong to the system.
    pub fn solutions(&self, w: &Buffer<f64, D>) -> Result<Vec<Vec<f64>>, FemError> {
        self.right.solutions(w)
    }
}

/// Returns what to say of a right side that was projected, if anything.
fn warning_of_imbalance(imbalance: f64) -> Option<String> {
    (imbalance > 1e-9).then(|| {
        format!(
            "source and flux of the pure Neumann problem balance up to {imbalance:.1e} of their size; the rest was projected \
             away"
        )
    })
}
