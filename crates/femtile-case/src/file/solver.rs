use femtile_matrix_free::MetricEvaluation;
use femtile_solve::Partitioner;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AmgSection, Amount, GmgSection, PmgSection, schema};

/// Representations of the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operator {
    /// The one expected to be fastest for the space.
    #[default]
    Auto,
    /// A sparse matrix.
    Assembled,
    /// Matrix-free, on quadrilaterals and hexahedra.
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
    /// Conjugate gradients with merged vector operations, on CPUs within the loop over cells; with `jacobi` or no
    /// preconditioner.
    MergedCg,
    /// Pipelined conjugate gradients: one reduction and one pass over memory per iteration.
    PipelinedCg,
    /// s-step conjugate gradients with `steps` steps per pass, with `jacobi` or no preconditioner.
    SStepCg,
    /// GMRES, restarted after `restart` directions: the residual norm never grows, and the preconditioner may be
    /// nonsymmetric.
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
    /// Algebraic multigrid, levels in f32 by default: iterations almost independent of the mesh size. For degree 1.
    Amg,
    /// Geometric multigrid, levels in f32 by default: a few iterations for every degree and any number of cells. On
    /// boxes, deformed ones too, with u given on whole sides, one at least; on GPUs where hexahedra are of one size.
    Gmg,
    /// p-multigrid, levels in f32 by default: from the degree down to 1 without a matrix, algebraic multigrid below. On
    /// quadrilaterals and hexahedra of any shape.
    Pmg,
}

impl PreconditionerName {
    /// Returns `true` where options of algebraic multigrid apply.
    pub const fn has_algebraic_levels(self) -> bool {
        matches!(self, Self::Amg | Self::Pmg)
    }
}

/// Linearizations of equations whose coefficients depend on u.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NonlinearName {
    /// Newton's method, with exact derivatives of the coefficients.
    #[default]
    Newton,
    /// Picard's iteration, with coefficients of the last iterate.
    Picard,
}

/// Precision of the arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Precision {
    /// f64 throughout.
    #[default]
    F64,
    /// f32 throughout; only for equations in time.
    F32,
}

/// Evaluation of cell metrics in matrix-free operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MetricName {
    /// The cheapest way for each batch of cells.
    #[default]
    Auto,
    /// One metric per cell, seven numbers; for parallelepipeds. On GPUs scalar coefficients that vary lie beside it.
    Constant,
    /// Computed at every quadrature point from the nodes of the cell; on GPUs for straight cells.
    Computed,
    /// The metric merged with σ and λ, stored at every quadrature point.
    Stored,
}

impl From<MetricName> for Option<MetricEvaluation> {
    fn from(name: MetricName) -> Self {
        match name {
            MetricName::Auto => None,
            MetricName::Constant => Some(MetricEvaluation::Constant),
            MetricName::Computed => Some(MetricEvaluation::Computed),
            MetricName::Stored => Some(MetricEvaluation::Stored),
        }
    }
}

/// Ways to divide a mesh among ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PartitionName {
    /// Cuts across the longest side of what is left, at the median of the cells.
    #[default]
    Bisection,
    /// Pieces of a Hilbert curve through the cells.
    Hilbert,
}

impl From<PartitionName> for Partitioner {
    fn from(name: PartitionName) -> Self {
        match name {
            PartitionName::Bisection => Self::Bisection,
            PartitionName::Hilbert => Self::Hilbert,
        }
    }
}

/// `[solver]`: settings of the solve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("allOf" = [
    schema::needs("steps", "method", &["s-step-cg"]),
    schema::needs("restart", "method", &["gmres"]),
    schema::needs("amg", "preconditioner", &["amg", "pmg"]),
    schema::needs("gmg", "preconditioner", &["gmg"]),
    schema::needs("pmg", "preconditioner", &["pmg"])
]))]
pub struct SolverSection {
    /// Representation of the operator.
    pub operator: Operator,
    /// The format of an assembled matrix in products.
    pub format: FormatName,
    /// Evaluation of cell metrics in a matrix-free operator.
    pub metric: MetricName,
    /// The iterative method.
    pub method: Method,
    /// Steps that `s-step-cg` takes at once, 1 to 6; 3 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 6))]
    pub steps: Option<usize>,
    /// Directions that `gmres` keeps, 1 or more; 30 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub restart: Option<usize>,
    /// The preconditioner.
    pub preconditioner: PreconditionerName,
    /// The solve ends when ‖r‖ ≤ tolerance · ‖b‖, b taken after boundary values are lifted. Of hearts: when the error that it
    /// leaves in V is this share of the range of action potentials, root mean square; 1e-5 when absent.
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub tolerance: f64,
    /// The solve ends after this many iterations at the latest.
    pub max_iterations: usize,
    /// The solve ends after this many seconds at the latest; no limit when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1e9))]
    pub time_limit_s: Option<f64>,
    /// The linearization where a coefficient depends on u.
    pub nonlinear: NonlinearName,
    /// Where a coefficient depends on u: the iteration ends when ‖r‖ ≤ nonlinear_tolerance · ‖b‖, with the residual of the
    /// equation and the right side of its linearization, and the next correction is at most five times that share of u; in time b
    /// is what the step changes.
    pub nonlinear_tolerance: f64,
    /// Where a coefficient depends on u: the most linearizations, in each step of an equation in time.
    pub nonlinear_iterations: usize,
    /// Precision of the arithmetic.
    pub precision: Precision,
    /// `auto`, `cpu`, `cuda` or `cuda:N`; several GPUs, such as `cuda:0-3` or `cuda:0,2`, each solve a part of the problem.
    #[schemars(regex(pattern = "^(auto|cpu|cuda(:[0-9]+([-,][0-9]+)*)?)$"))]
    pub device: String,
    /// Threads of the CPU; 0 for all. Ranks that are threads divide them.
    pub threads: usize,
    /// Ranks that divide a problem on the cells of a mesh: threads of the program. With MPI it is the number of its ranks,
    /// whatever stands here.
    #[schemars(range(min = 1, max = 1024))]
    pub ranks: usize,
    /// The way to divide a mesh among ranks.
    pub partition: PartitionName,
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
            nonlinear: NonlinearName::Newton,
            nonlinear_tolerance: 1e-8,
            nonlinear_iterations: 50,
            precision: Precision::F64,
            device: "auto".into(),
            threads: 0,
            ranks: 1,
            partition: PartitionName::Bisection,
            memory_limit: None,
            amg: None,
            gmg: None,
            pmg: None,
        }
    }
}
