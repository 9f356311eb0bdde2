use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Methods in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimeMethod {
    /// Alternating directions, on a grid.
    #[default]
    Adi,
}

/// Schemes of alternating directions, all with θ = ½.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SchemeName {
    /// Half a step implicit along x, then one along y; two dimensions, no mixed derivatives.
    PeacemanRachford,
    /// An explicit step and a correction along each axis; of first order with mixed derivatives.
    #[default]
    Douglas,
    /// Another name of the same scheme.
    DouglasGunn,
    /// Two passes, of second order with mixed derivatives.
    CraigSneyd,
}

/// Where the bands of the implicit systems come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CoefficientSource {
    /// Formed on the fly, but read from arrays where a coefficient is an expression and the device a CPU.
    #[default]
    Auto,
    /// Formed in the kernel that solves: no array of coefficients in memory.
    OnTheFly,
    /// Formed once and read in every step.
    Arrays,
}

/// `[time]`: how an equation in time is advanced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimeSection {
    /// The method.
    #[serde(default)]
    pub method: TimeMethod,
    /// Its scheme.
    #[serde(default)]
    pub scheme: SchemeName,
    /// The time of the initial values.
    #[serde(default)]
    pub start: f64,
    /// The time that is reached.
    pub end: f64,
    /// Number of steps.
    pub steps: usize,
    /// Number of initial steps replaced by two half steps with θ = 1 (Rannacher), for initial values with jumps or kinks.
    #[serde(default)]
    pub rannacher_steps: usize,
    /// Where the bands of the implicit systems come from.
    #[serde(default)]
    pub coefficients: CoefficientSource,
    /// The algorithm of the tridiagonal solves, by name.
    #[serde(default = "auto")]
    pub algorithm: String,
}

fn auto() -> String {
    "auto".into()
}
