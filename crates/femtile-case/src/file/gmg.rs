use femtile_multigrid::Smoother;
use femtile_solve::GmgStart;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LevelPrecision;

/// Smoothers of geometric multigrid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BoxSmootherName {
    /// Chebyshev on a CPU; vertex patches on a GPU, for thin boxes, and for quadrilaterals that are deformed or of several sigma.
    #[default]
    Auto,
    /// Chebyshev polynomial of degree 4 in the operator scaled by its diagonal; on CPUs.
    Chebyshev,
    /// Schwarz on vertex patches, the cells around each vertex: multiplicative for rectangles of one sigma (on a GPU of one
    /// size), else additive.
    VertexPatch,
}

impl From<BoxSmootherName> for Smoother {
    fn from(name: BoxSmootherName) -> Self {
        match name {
            BoxSmootherName::Auto => Self::Auto,
            BoxSmootherName::Chebyshev => Self::Chebyshev,
            BoxSmootherName::VertexPatch => Self::VertexPatch,
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
