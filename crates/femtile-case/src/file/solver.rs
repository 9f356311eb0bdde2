use femtile_fem::matrix_free::MetricEvaluation;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AmgSection, Amount, GmgSection, PmgSection};

/// How the operator is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operator {
    /// Whatever is fastest for the space.
    #[default]
    Auto,
    /// A sparse matrix.
    Assembled,
    /// Computed on the fly, on quadrilaterals and hexahedra.
    MatrixFree,
}

/// Formats of an assembled matrix in the products of a solve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FormatName {
    /// ELL-WARP where it is expected to be faster, else compressed sparse rows.
    #[default]
    Auto,
    /// Compressed sparse rows.
    Csr,
    /// Slices of rows.
    EllWarp,
}

/// Iterative methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Conjugate gradients.
    #[default]
    Cg,
    /// The same with all vectors passed over once, on CPUs within the loop over cells; with the diagonal or no
    /// preconditioner.
    MergedCg,
    /// The same with one reduction and one pass over memory an iteration; on CPUs.
    PipelinedCg,
    /// The same, `steps` steps at once; on CPUs, with the diagonal or no preconditioner.
    SStepCg,
    /// The generalized minimal residual method, begun anew after `restart` directions: its residual never grows, and
    /// preconditioners need not be symmetric.
    Gmres,
}

/// Preconditioners.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PreconditionerName {
    /// The one that is expected to be fastest: `gmg` where it serves, `pmg` on other quadrilaterals and hexahedra of degree 2
    /// and more, `amg` else; `jacobi` where a few iterations with it are enough. The report says which, and why.
    #[default]
    Auto,
    /// The diagonal of the matrix.
    Jacobi,
    /// None.
    None,
    /// Algebraic multigrid, its levels in single precision: iterations hardly grow with the mesh. For degree 1.
    Amg,
    /// Geometric multigrid, its levels in single precision: a few iterations for every degree and any number of cells. On
    /// boxes, deformed ones too, with u given on whole sides, one at least; on GPUs where hexahedra are of one size.
    Gmg,
    /// p-multigrid, its levels in single precision: from the degree down to 1 without a matrix, algebraic multigrid below. On
    /// quadrilaterals and hexahedra of any shape; on GPUs on hexahedra.
    Pmg,
}

impl PreconditionerName {
    /// Whether options of algebraic multigrid make sense beside it.
    pub const fn has_algebraic_levels(self) -> bool {
        matches!(self, Self::Amg | Self::Pmg)
    }
}

/// Precision of the arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// Double precision throughout.
    #[default]
    F64,
    /// Single precision throughout; for equations in time alone.
    F32,
    /// Single precision in the preconditioner, double outside; not available yet.
    Mixed,
}

/// How matrix-free operators obtain cell metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MetricName {
    /// The cheapest way for each batch of cells.
    #[default]
    Auto,
    /// One metric per cell, seven numbers; for parallelepipeds.
    Constant,
    /// Computed at every quadrature point from the corners of straight cells.
    Trilinear,
    /// Computed at every quadrature point from the 27 nodes of cells of order 2.
    Triquadratic,
    /// Computed at every quadrature point from all nodes of the cell.
    Isoparametric,
    /// The inverse Jacobian and its determinant, stored at every quadrature point.
    Inverse,
    /// The metric merged with σ and λ, stored at every quadrature point.
    Stored,
}

impl From<MetricName> for Option<MetricEvaluation> {
    fn from(name: MetricName) -> Self {
        match name {
            MetricName::Auto => None,
            MetricName::Constant => Some(MetricEvaluation::Constant),
            MetricName::Trilinear => Some(MetricEvaluation::Trilinear),
            MetricName::Triquadratic => Some(MetricEvaluation::Triquadratic),
            MetricName::Isoparametric => Some(MetricEvaluation::Isoparametric),
            MetricName::Inverse => Some(MetricEvaluation::Inverse),
            MetricName::Stored => Some(MetricEvaluation::Stored),
        }
    }
}

/// `[solver]`: how the system is solved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SolverSection {
    /// How the operator is held.
    pub operator: Operator,
    /// The format of an assembled matrix in products.
    pub format: FormatName,
    /// How a matrix-free operator obtains cell metrics.
    #[serde(alias = "geometry")]
    pub metric: MetricName,
    /// The iterative method.
    pub method: Method,
    /// Steps that `s-step-cg` takes at once, 1 to 6; 3 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<usize>,
    /// Directions that `gmres` keeps, 1 or more; 30 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart: Option<usize>,
    /// The preconditioner.
    pub preconditioner: PreconditionerName,
    /// The solve ends when ‖r‖ ≤ tolerance · ‖b‖, b taken after boundary values are lifted.
    pub tolerance: f64,
    /// The solve ends after this many iterations at the latest.
    pub max_iterations: usize,
    /// The solve ends after this many seconds at the latest; no limit when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit_s: Option<f64>,
    /// Precision of the arithmetic.
    pub precision: Precision,
    /// `auto`, `cpu`, `cuda` or `cuda:N`.
    pub device: String,
    /// Threads of the CPU; 0 for all.
    pub threads: usize,
    /// The most memory that a run may take: bytes, or a text such as "8 GB"; that of the machine, or of its control group,
    /// when absent. What is estimated to need more is refused before it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit: Option<Amount>,
    /// Options of algebraic multigrid, also below p-multigrid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amg: Option<AmgSection>,
    /// Options of geometric multigrid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gmg: Option<GmgSection>,
    /// Options of p-multigrid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmg: Option<PmgSection>,
}

impl Default for SolverSection {
    fn default() -> Self {
        Self {
            operator: Operator::Auto,
            format: FormatName::Auto,
            metric: MetricName::Auto,
            method: Method::Cg,
            steps: None,
            restart: None,
            preconditioner: PreconditionerName::Auto,
            tolerance: 1e-10,
            max_iterations: 10_000,
            time_limit_s: None,
            precision: Precision::F64,
            device: "auto".into(),
            threads: 0,
            memory_limit: None,
            amg: None,
            gmg: None,
            pmg: None,
        }
    }
}
