//! Sides whose unknowns follow those of other sides.

use femtile_solve::Key;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CaseFile, Entries, OfUnknowns, schema, text_or_integer};

/// A `[[periodic]]`: u on the side `to` is that on the side `from` and a jump.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("not" = { "required": ["translation", "rotation"] }))]
pub struct PeriodicSection {
    /// The side that determines u, as `where` of a `[[boundary]]`.
    #[serde(deserialize_with = "text_or_integer")]
    #[schemars(schema_with = "schema::text_or_integer")]
    pub from: String,
    /// The side that follows.
    #[serde(deserialize_with = "text_or_integer")]
    #[schemars(schema_with = "schema::text_or_integer")]
    pub to: String,
    /// The vector from points of `from` to those of `to`; by default the one between the middles of the sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 3))]
    pub translation: Option<Vec<f64>>,
    /// A rotation that takes `from` to `to`, in place of a translation; it turns vectors too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rotation: Option<RotationSection>,
    /// The amount by which u on `to` exceeds that on `from`, at points of `to`: a number or an expression in x, y, z, of a vector an array with one for
    /// each component, of several unknowns a table; those that are left out have no jump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jump: Option<OfUnknowns<Entries>>,
    /// The distance up to which points of the sides are the same; by default a hundredth of the size of a facet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub tolerance: Option<f64>,
}

/// A rotation about an axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RotationSection {
    /// The angle, by the right-hand rule.
    pub degrees: f64,
    /// The direction of the axis; by default along z, as it is in the plane.
    #[serde(default = "along_z")]
    pub axis: [f64; 3],
    /// A point of the axis: two or three coordinates; by default the origin.
    #[serde(default = "origin")]
    #[schemars(length(min = 2, max = 3))]
    pub centre: Vec<f64>,
}

fn along_z() -> [f64; 3] {
    [0.0, 0.0, 1.0]
}

fn origin() -> Vec<f64> {
    vec![0.0; 3]
}

/// A `[[tie]]`: u on the side `to` is that on the side `from`, where both coincide and their meshes need not match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TieSection {
    /// The side that determines u, as `where` of a `[[boundary]]`; rather the one with the coarser mesh.
    #[serde(deserialize_with = "text_or_integer")]
    #[schemars(schema_with = "schema::text_or_integer")]
    pub from: String,
    /// The side that follows.
    #[serde(deserialize_with = "text_or_integer")]
    #[schemars(schema_with = "schema::text_or_integer")]
    pub to: String,
    /// The distance up to which the sides coincide; by default a hundredth of the size of a facet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub tolerance: Option<f64>,
}

impl CaseFile {
    /// Returns the first key that makes unknowns follow others or that solves for several sides, which forms alone have.
    pub(crate) fn key_of_sides(&self) -> Option<Vec<Key>> {
        let first = |key: &str| vec![key.into(), 0.into()];
        if !self.periodic.is_empty() {
            return Some(first("periodic"));
        }
        if !self.tie.is_empty() {
            return Some(first("tie"));
        }
        if let Some(i) = self.boundary.iter().position(|section| section.floats()) {
            return Some(vec!["boundary".into(), i.into(), "floating".into()]);
        }
        (!self.output.matrix.is_empty()).then(|| vec!["output".into(), "matrix".into()])
    }
}
