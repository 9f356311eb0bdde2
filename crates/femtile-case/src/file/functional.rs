use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{schema, some_text_or_integer, text_or_integer};

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
    /// ∫u, of cells or facets; with `formula` that of the formula.
    Integral {
        /// Name in the report.
        name: String,
        /// A formula of the unknowns, their gradients, x, y, z, t, the coefficients of the equation and, of facets, the `normal`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        formula: Option<String>,
        /// Facets: a part of the boundary as of a flux, or the tag of facets inside the mesh. The cells when absent.
        #[serde(default, deserialize_with = "some_text_or_integer", skip_serializing_if = "Option::is_none")]
        #[schemars(schema_with = "schema::text_or_integer")]
        r#where: Option<String>,
        /// The tag of the cells on the side of facets inside the mesh whose values count, out of which the normal points.
        #[serde(default, deserialize_with = "some_text_or_integer", skip_serializing_if = "Option::is_none")]
        #[schemars(schema_with = "schema::text_or_integer")]
        from: Option<String>,
    },
    /// ∫u / ∫1, of cells or facets; with `formula` that of the formula.
    Mean {
        /// Name in the report.
        name: String,
        /// A formula of the unknowns, their gradients, x, y, z, t, the coefficients of the equation and, of facets, the `normal`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        formula: Option<String>,
        /// Facets: a part of the boundary as of a flux, or the tag of facets inside the mesh. The cells when absent.
        #[serde(default, deserialize_with = "some_text_or_integer", skip_serializing_if = "Option::is_none")]
        #[schemars(schema_with = "schema::text_or_integer")]
        r#where: Option<String>,
        /// The tag of the cells on the side of facets inside the mesh whose values count, out of which the normal points.
        #[serde(default, deserialize_with = "some_text_or_integer", skip_serializing_if = "Option::is_none")]
        #[schemars(schema_with = "schema::text_or_integer")]
        from: Option<String>,
    },
    /// u at a point, or at several; exactly one of `point` and `points`.
    #[schemars(extend("oneOf" = [{ "required": ["point"] }, { "required": ["points"] }]))]
    ValueAt {
        /// Name in the report; of several points `name[0]`, `name[1]`, ….
        name: String,
        /// Two or three coordinates.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        point: Option<Vec<f64>>,
        /// An array of points.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(length(min = 1))]
        points: Option<Vec<Vec<f64>>>,
        /// Monodomain: the field, at the end of the run; the potential when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<FieldOfRun>,
    },
    /// ∫ n·σ∇u over a part of the boundary, n pointing outwards: positive where heat flows in. With `from` what flows out of cells.
    Flux {
        /// Name in the report.
        name: String,
        /// The part of the boundary: `all`, the name or the number of a tag, or a comparison such as `x < 1e-9`.
        #[serde(deserialize_with = "text_or_integer")]
        #[schemars(schema_with = "schema::text_or_integer")]
        r#where: String,
        /// The tag of cells out of which the flux is positive, through those of the facets
        /// that are theirs, inside the mesh too.
        #[serde(default, deserialize_with = "some_text_or_integer", skip_serializing_if = "Option::is_none")]
        #[schemars(schema_with = "schema::text_or_integer")]
        from: Option<String>,
    },
    /// u along a straight line, as the files NAME.csv and NAME.svg.
    Along {
        /// Name of the files: letters, digits, `-` and `_`.
        #[schemars(regex(pattern = "^[A-Za-z0-9_-]+$"))]
        name: String,
        /// The first point.
        from: Vec<f64>,
        /// The last point.
        to: Vec<f64>,
        /// Evenly spaced points, both ends among them; 2 to 1,000,000.
        #[serde(default = "line_points")]
        #[schemars(range(min = 2, max = 1_000_000))]
        points: u32,
        /// Monodomain: the field; the potential when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        of: Option<FieldOfRun>,
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

fn line_points() -> u32 {
    101
}

/// Nodal fields that a run of `kind = "monodomain"` records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FieldOfRun {
    /// The time of the first activation.
    Activation,
    /// The time of the last repolarisation.
    Repolarisation,
    /// The duration of the last complete action potential.
    Duration,
}

/// The exact solution to compare with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Exact {
    /// An expression in x, y, z; on a grid in t as well.
    All(String),
    /// One for each component of u.
    Each(Vec<String>),
}

impl Functional {
    /// Returns the field of a run in time that it is of, where that is not u.
    pub fn field(&self) -> Option<FieldOfRun> {
        match self {
            Self::ValueAt { of, .. } | Self::Along { of, .. } => *of,
            _ => None,
        }
    }

    /// Returns the key that makes an integral or a mean one of forms: a formula, or facets.
    pub(crate) fn key_of_form(&self) -> Option<&'static str> {
        let (Self::Integral { formula, r#where, .. } | Self::Mean { formula, r#where, .. }) = self else {
            return None;
        };
        let of_facets = r#where.as_ref().map(|_| "where");
        formula.as_ref().map(|_| "formula").or(of_facets)
    }

    /// Its name in the report.
    pub fn name(&self) -> &str {
        match self {
            Self::Max { name }
            | Self::Min { name }
            | Self::L2Norm { name }
            | Self::Energy { name }
            | Self::Integral { name, .. }
            | Self::Mean { name, .. }
            | Self::ValueAt { name, .. }
            | Self::Flux { name, .. }
            | Self::Along { name, .. }
            | Self::ErrorL2 { name, .. }
            | Self::ErrorH1 { name, .. } => name,
        }
    }
}
