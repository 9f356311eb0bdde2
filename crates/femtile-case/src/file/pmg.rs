use femtile_multigrid::PMultigridConfig;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::LevelPrecision;

/// `[solver.pmg]`: options of p-multigrid; those of degree 1 are in `[solver.amg]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PmgSection {
    /// Products of the Chebyshev smoother before and after the next lower degree, 1 to 16.
    #[schemars(range(min = 1, max = 16))]
    pub sweeps: usize,
    /// Precision of the levels; the Krylov method is in f64.
    pub precision: LevelPrecision,
}

impl Default for PmgSection {
    fn default() -> Self {
        Self { sweeps: PMultigridConfig::default().sweeps, precision: LevelPrecision::default() }
    }
}
