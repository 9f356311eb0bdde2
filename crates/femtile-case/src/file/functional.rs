use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number computed from the solution u.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Functional {
    /// Largest value at a node.
    Max {
        /// Name in the report.
        name: String,
    },
    /// Smallest value at a node.
    Min {
        /// Name in the report.
        name: String,
    },
    /// √∫u².
    L2Norm {
        /// Name in the report.
        name: String,
    },
    /// ∫ σ∇u·∇u + λu².
    Energy {
        /// Name in the report.
        name: String,
    },
    /// ∫u.
    Integral {
        /// Name in the report.
        name: String,
    },
    /// u at a point.
    ValueAt {
        /// Name in the report.
        name: String,
        /// Two or three coordinates.
        point: Vec<f64>,
    },
    /// √∫(u − exact)².
    ErrorL2 {
        /// Name in the report.
        name: String,
        /// The exact solution.
        exact: Exact,
    },
    /// √∫|∇(u − exact)|².
    ErrorH1 {
        /// Name in the report.
        name: String,
        /// The exact solution.
        exact: Exact,
    },
}

/// What a solution is compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "an expression in quotes, or an array with one for each component")]
pub enum Exact {
    /// An expression in x, y, z; on a grid in t as well.
    All(String),
    /// One for each component of u.
    Each(Vec<String>),
}

impl Functional {
    /// Its name in the report.
    pub fn name(&self) -> &str {
        match self {
            Self::Max { name }
            | Self::Min { name }
            | Self::L2Norm { name }
            | Self::Energy { name }
            | Self::Integral { name }
            | Self::ValueAt { name, .. }
            | Self::ErrorL2 { name, .. }
            | Self::ErrorH1 { name, .. } => name,
        }
    }
}
