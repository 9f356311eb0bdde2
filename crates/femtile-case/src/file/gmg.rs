use femtile_multigrid::Smoother;
use femtile_solve::GmgStart;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LevelPrecision;

/// Smoothers of geometric multigrid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BoxSmootherName {
    /// On CPUs Chebyshev for rectangles that are not thin, with one sigma, up to degree 5, without AVX-512 up to 7, else
    /// multiplicative Schwarz; on GPUs multiplicative Schwarz for equal rectangles with one sigma, else additive Schwarz.
    #[default]
    Auto,
    /// Multiplicative Schwarz on vertex patches, the cells around each vertex; exact local solves where cells are rectangles.
    VertexPatch,
    /// Additive Schwarz on vertex patches: cheaper sweeps where cells are not rectangles.
    AdditivePatch,
    /// Chebyshev polynomial in the operator scaled by its diagonal.
    Chebyshev,
    /// Point Gauss–Seidel on one thread of a CPU; for comparisons.
    GaussSeidel,
}

impl From<BoxSmootherName> for Smoother {
    fn from(name: BoxSmootherName) -> Self {
        match name {
            BoxSmootherName::Auto => Self::Auto,
            BoxSmootherName::VertexPatch => Self::VertexPatch,
            BoxSmootherName::AdditivePatch => Self::AdditivePatch,
            BoxSmootherName::Chebyshev => Self::Chebyshev,
            BoxSmootherName::GaussSeidel => Self::GaussSeidel,
        }
    }
}

/// Initial iterate of a solve with geometric multigrid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum GmgStartName {
    /// Zero.
    #[default]
    None,
    /// Full multigrid on the levels of the preconditioner, on a processor where cells are rectangles, σ is the same in all of
    /// them and given values are zero; elsewhere zero.
    Levels,
    /// Full multigrid: the problem discretized on coarser cells as well, its solution interpolated.
    Full,
}

impl From<GmgStartName> for GmgStart {
    fn from(name: GmgStartName) -> Self {
        match name {
            GmgStartName::None => Self::None,
            GmgStartName::Levels => Self::Levels,
            GmgStartName::Full => Self::Full,
        }
    }
}

/// `[solver.gmg]`: options of geometric multigrid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GmgSection {
    /// The smoother of every level.
    pub smoother: BoxSmootherName,
    /// Precision of the levels; the Krylov method is in f64.
    pub precision: LevelPrecision,
    /// Initial iterate of the solve.
    pub start: GmgStartName,
}
