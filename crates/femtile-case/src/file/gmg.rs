use femtile_multigrid::Smoother;
use femtile_solve::GmgStart;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LevelPrecision;

/// What smooths on every level of geometric multigrid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BoxSmootherName {
    /// Solves on the cells around every vertex, exact where these are rectangles.
    #[default]
    VertexPatch,
    /// The same, all with one residual: less work a step where cells are no rectangles.
    AdditivePatch,
    /// A polynomial of products and the diagonal.
    Chebyshev,
    /// Gauss–Seidel's method, node by node on one thread: to compare with.
    Point,
}

impl From<BoxSmootherName> for Smoother {
    fn from(name: BoxSmootherName) -> Self {
        match name {
            BoxSmootherName::VertexPatch => Self::VertexPatch,
            BoxSmootherName::AdditivePatch => Self::AdditivePatch,
            BoxSmootherName::Chebyshev => Self::Chebyshev,
            BoxSmootherName::Point => Self::GaussSeidel,
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
    /// Full multigrid: the solution on coarser cells, interpolated.
    Full,
}

impl From<GmgStartName> for GmgStart {
    fn from(name: GmgStartName) -> Self {
        match name {
            GmgStartName::None => Self::None,
            GmgStartName::Full => Self::Full,
        }
    }
}

/// `[solver.gmg]`: options of geometric multigrid.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct GmgSection {
    /// What smooths.
    pub smoother: BoxSmootherName,
    /// What the levels are kept in; the solve itself has 64 bits a number.
    pub precision: LevelPrecision,
    /// Initial iterate of the solve.
    pub start: GmgStartName,
}
