use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema;

/// A number or tensor that may vary in space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, deny_unknown_fields)]
pub enum Value {
    /// The same number everywhere.
    Number(f64),
    /// An expression in x, y, z.
    Text(String),
    /// A number or expression for each component of u.
    Components(Vec<Entry>),
    /// A symmetric tensor by rows: 2×2 or 3×3.
    Tensor(#[schemars(schema_with = "schema::tensor")] Vec<Vec<Entry>>),
    /// One value for each tag of cells, by the tag's name or number.
    ByTag {
        /// The values.
        by_tag: BTreeMap<String, Value>,
        /// The value of cells with other tags; without it there must be none.
        #[serde(skip_serializing_if = "Option::is_none")]
        default: Option<Box<Value>>,
    },
    /// A cell field of the mesh file: 1 component, 3 (a diagonal), 6 (xx, yy, zz, yz, xz, xy) or 9.
    Field {
        /// Its name.
        field: String,
    },
    /// A conductivity along and across fibres, whose directions are a cell field of the mesh.
    Fibres {
        /// The cell field of the directions, which are normalised.
        fibre: String,
        /// The conductivity along the fibres: one number a cell.
        along: Box<Value>,
        /// The conductivity across the fibres.
        across: Box<Value>,
    },
    /// A conductivity along fibres, within sheets across them, and normal to the sheets.
    Sheets {
        /// The cell field of the directions of fibres, which are normalised.
        fibre: String,
        /// The conductivity along the fibres: one number a cell.
        along: Box<Value>,
        /// The conductivity across the fibres within the sheets.
        across: Box<Value>,
        /// The cell field of directions within sheets, across the fibres.
        sheet: String,
        /// The conductivity normal to the sheets.
        normal: Box<Value>,
    },
    /// The conductivity of the monodomain equation, intra · extra / (intra + extra).
    Bidomain {
        /// The intracellular conductivity.
        intra: Box<Value>,
        /// The extracellular conductivity.
        extra: Box<Value>,
    },
}

/// A value for the only unknown, or one for each of several by its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "OfUnknowns_{T}")]
pub enum OfUnknowns<T> {
    /// That of the only unknown.
    One(T),
    /// Those of several unknowns; some may be left out.
    Each(BTreeMap<String, T>),
}

impl<T> OfUnknowns<T> {
    /// Returns that of an equation with one unknown.
    pub fn one(&self) -> Option<&T> {
        match self {
            Self::One(value) => Some(value),
            Self::Each(_) => None,
        }
    }
}

/// A number or an expression, or an array with one for each component of u.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Entries {
    /// That of all components.
    All(Entry),
    /// Those of the components.
    Each(Vec<Entry>),
}

impl Entries {
    /// Returns that of the first component.
    pub fn first(&self) -> Option<&Entry> {
        match self {
            Self::All(entry) => Some(entry),
            Self::Each(entries) => entries.first(),
        }
    }
}

/// A number, or an array with one for each component of u.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Totals {
    /// That of an unknown that is a number.
    One(f64),
    /// Those of the components.
    Each(Vec<f64>),
}

/// One entry of a tensor, or of an array with one for each component.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Entry {
    /// A number.
    Number(f64),
    /// An expression in x, y, z.
    Text(String),
}
