//! The file format of models: TOML with formulas.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use toml::Spanned;

/// Entries by name; their order is that of the text, found by the places of the names.
pub(super) type Table<T> = BTreeMap<Spanned<String>, T>;

/// Returns the entries of a table in the order of the text.
pub(super) fn in_order<T>(table: &Table<T>) -> Vec<(&Spanned<String>, &T)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

/// A description of a model, as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Description {
    pub name: String,
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub source: Vec<String>,
    #[serde(default)]
    pub units: Option<Spanned<UnitsTable>>,
    pub voltage: VoltageTable,
    #[serde(default)]
    pub constants: Table<Spanned<Number>>,
    #[serde(default)]
    pub definitions: Table<Spanned<String>>,
    #[serde(default)]
    pub gates: Table<GateTable>,
    #[serde(default)]
    pub states: Table<StateTable>,
    #[serde(default)]
    pub variants: Table<VariantTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnitsTable {
    #[serde(default)]
    pub dimensionless: bool,
    pub time_ms: Option<f64>,
    pub voltage_mv: Option<[f64; 2]>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VoltageTable {
    pub name: Spanned<String>,
    pub initial: Spanned<Number>,
    pub current: Spanned<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct GateTable {
    pub initial: Spanned<Number>,
    pub steady: Option<Spanned<String>>,
    pub time_constant: Option<Spanned<String>>,
    pub alpha: Option<Spanned<String>>,
    pub beta: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StateTable {
    pub initial: Spanned<Number>,
    pub rate: Spanned<String>,
}

/// Values and formulas of a variant that replace those of the model.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct VariantTable {
    pub title: String,
    pub constants: Table<Spanned<Number>>,
    pub definitions: Table<Spanned<String>>,
    pub initial: Table<Spanned<Number>>,
    pub gates: Table<VariantGate>,
    pub states: Table<VariantState>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantGate {
    pub steady: Option<Spanned<String>>,
    pub time_constant: Option<Spanned<String>>,
    pub alpha: Option<Spanned<String>>,
    pub beta: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VariantState {
    pub rate: Spanned<String>,
}

/// A number, or a formula of constants that stand above it.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Number {
    Value(f64),
    Formula(String),
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NumberVisitor;
        impl Visitor<'_> for NumberVisitor {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or a formula in quotes")
            }
            fn visit_f64<E: Error>(self, value: f64) -> Result<Number, E> {
                Ok(Number::Value(value))
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<Number, E> {
                Ok(Number::Value(value as f64))
            }
            fn visit_str<E: Error>(self, text: &str) -> Result<Number, E> {
                Ok(Number::Formula(text.into()))
            }
        }
        deserializer.deserialize_any(NumberVisitor)
    }
}
