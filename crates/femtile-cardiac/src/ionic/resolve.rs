//! From a description as it is written to a model: names checked, variants applied, constants computed.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use femtile::expression::{ExpressionError, ProgramBuilder, Value};
use toml::Spanned;

use super::description::{Description, GateTable, Number, UnitsTable, VariantTable, in_order};
use super::formulas::RESERVED;
use super::model::{Constant, Dynamics, Model, State, Units, Voltage};
use super::source::{Formula, Source};
use crate::CardiacError;

/// Returns the model of a description.
pub(super) fn model(
    source: Arc<Source>,
    description: Arc<Description>,
    variant: Option<&str>,
    overrides: Vec<(String, f64)>,
) -> Result<Model, CardiacError> {
    check_names(&source, &description)?;
    for table in description.variants.values() {
        check_variant(&source, &description, table)?;
    }
    let none = VariantTable::default();
    let chosen = chosen_variant(&source, &description, variant)?.unwrap_or(&none);
    let mut numbers = Numbers::new(&source)?;
    for (name, number) in in_order(&description.constants) {
        let value =
            overrides.iter().find(|(overridden, _)| overridden == name.get_ref()).map(|(_, value)| *value);
        let number = chosen.constants.get(name).unwrap_or(number);
        numbers.define(name, number, value)?;
    }
    let initial = |numbers: &mut Numbers<'_>, name: &Spanned<String>, number: &Spanned<Number>| {
        numbers.value(chosen.initial.get(name).unwrap_or(number))
    };
    let table = &description.voltage;
    let voltage = Voltage {
        name: table.name.get_ref().clone(),
        initial: initial(&mut numbers, &table.name, &table.initial)?,
    };
    let mut states = Vec::new();
    for (name, gate) in in_order(&description.gates) {
        let dynamics = gate_dynamics(&source, name, gate, chosen)?;
        states.push(State {
            name: name.get_ref().clone(),
            initial: initial(&mut numbers, name, &gate.initial)?,
            dynamics,
        });
    }
    for (name, state) in in_order(&description.states) {
        let rate = chosen.states.get(name).map_or(&state.rate, |replaced| &replaced.rate);
        states.push(State {
            name: name.get_ref().clone(),
            initial: initial(&mut numbers, name, &state.initial)?,
            dynamics: Dynamics::Rate(source.formula(rate)),
        });
    }
    let definitions = in_order(&description.definitions).into_iter().map(|(name, text)| {
        let text = chosen.definitions.get(name).unwrap_or(text);
        (name.get_ref().clone(), source.formula(text))
    });
    let definitions = definitions.collect();
    Ok(Model {
        units: units(&source, description.units.as_ref())?,
        current: source.formula(&description.voltage.current),
        constants: numbers.constants,
        variant: variant.map(str::to_owned),
        voltage,
        definitions,
        states,
        overrides,
        source,
        description,
    })
}

fn chosen_variant<'a>(
    source: &Source,
    description: &'a Description,
    variant: Option<&str>,
) -> Result<Option<&'a VariantTable>, CardiacError> {
    let Some(wanted) = variant else { return Ok(None) };
    let found = description.variants.iter().find(|(name, _)| name.get_ref() == wanted);
    if let Some((_, table)) = found {
        return Ok(Some(table));
    }
    let names: Vec<&str> =
        in_order(&description.variants).into_iter().map(|(name, _)| name.get_ref().as_str()).collect();
    let known = if names.is_empty() {
        "it has no variants".into()
    } else {
        format!("its variants are {}", names.join(", "))
    };
    Err(CardiacError::setting("model", format!("{} has no variant `{wanted}`; {known}", source.name)))
}

/// Refuses names in a variant that are not in the model.
fn check_variant(
    source: &Source,
    description: &Description,
    variant: &VariantTable,
) -> Result<(), CardiacError> {
    let states: Vec<&Spanned<String>> = description.gates.keys().chain(description.states.keys()).collect();
    let with_voltage = states.iter().copied().chain([&description.voltage.name]).collect();
    known(source, "constant", variant.constants.keys(), description.constants.keys().collect())?;
    known(source, "definition", variant.definitions.keys(), description.definitions.keys().collect())?;
    known(source, "variable", variant.initial.keys(), with_voltage)?;
    known(source, "gate", variant.gates.keys(), description.gates.keys().collect())?;
    known(source, "state", variant.states.keys(), description.states.keys().collect())
}

fn known<'a>(
    source: &Source,
    kind: &str,
    names: impl Iterator<Item = &'a Spanned<String>>,
    known: Vec<&Spanned<String>>,
) -> Result<(), CardiacError> {
    for name in names {
        if !known.contains(&name) {
            let known: Vec<&str> = known.iter().map(|name| name.get_ref().as_str()).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            let message = format!("there is no {kind} `{}`; there are {known}", name.get_ref());
            return Err(source.error(name.span().start, message));
        }
    }
    Ok(())
}

/// Refuses names that cannot be used in formulas or are given twice.
fn check_names(source: &Source, description: &Description) -> Result<(), CardiacError> {
    let mut names: Vec<&Spanned<String>> = vec![&description.voltage.name];
    names.extend(description.constants.keys());
    names.extend(description.definitions.keys());
    names.extend(description.gates.keys());
    names.extend(description.states.keys());
    let mut seen = HashSet::new();
    for name in names {
        let text = name.get_ref().as_str();
        let at = source.content(&name.span());
        if text.starts_with(RESERVED) {
            return Err(source.error(at, format!("names that begin with `{RESERVED}` are reserved")));
        }
        ProgramBuilder::new(&[text]).map_err(|error| source.error(at, error.to_string()))?;
        if !seen.insert(text) {
            return Err(source.error(at, format!("the name `{text}` is given twice")));
        }
    }
    Ok(())
}

fn gate_dynamics(
    source: &Source,
    name: &Spanned<String>,
    gate: &GateTable,
    variant: &VariantTable,
) -> Result<Dynamics, CardiacError> {
    let mut forms = [&gate.steady, &gate.time_constant, &gate.alpha, &gate.beta].map(Option::as_ref);
    if let Some(replaced) = variant.gates.get(name) {
        let replaced = [&replaced.steady, &replaced.time_constant, &replaced.alpha, &replaced.beta];
        for (form, replaced) in forms.iter_mut().zip(replaced) {
            *form = replaced.as_ref().or(*form);
        }
    }
    match forms.map(|form| form.map(|text| source.formula(text))) {
        [Some(steady), Some(time_constant), None, None] => Ok(Dynamics::Relaxation { steady, time_constant }),
        [steady, None, Some(alpha), Some(beta)] => Ok(Dynamics::Opening { steady, alpha, beta }),
        _ => {
            let message = format!(
                "the gate `{}` needs steady and time_constant, alpha and beta, or all but time_constant",
                name.get_ref()
            );
            Err(source.error(name.span().start, message))
        }
    }
}

fn units(source: &Source, table: Option<&Spanned<UnitsTable>>) -> Result<Units, CardiacError> {
    let Some(table) = table else { return Ok(Units::PHYSICAL) };
    let UnitsTable { dimensionless, time_ms, voltage_mv } = *table.get_ref();
    let has_scale = time_ms.is_some() && voltage_mv.is_some();
    let has_any = time_ms.is_some() || voltage_mv.is_some();
    if dimensionless == has_any || has_any != has_scale {
        let message = "units need either time_ms and voltage_mv or dimensionless = true";
        return Err(source.error(table.span().start, message));
    }
    let is_positive = |value: f64| value > 0.0 && value.is_finite();
    let is_sound = |[scale, offset]: [f64; 2]| is_positive(scale) && offset.is_finite();
    if !time_ms.is_none_or(is_positive) || !voltage_mv.is_none_or(is_sound) {
        let message = "time_ms and the factor of voltage_mv have to be positive numbers";
        return Err(source.error(table.span().start, message));
    }
    Ok(Units { time_ms, voltage_mv })
}

/// Constants and values computed from them.
struct Numbers<'a> {
    source: &'a Source,
    builder: ProgramBuilder,
    constants: Vec<Constant>,
}

impl<'a> Numbers<'a> {
    fn new(source: &'a Source) -> Result<Self, CardiacError> {
        let builder = ProgramBuilder::new(&[]).map_err(|error| source.error(0, error.to_string()))?;
        Ok(Self { source, builder, constants: Vec::new() })
    }

    /// Computes a constant, or takes the value that replaces it.
    fn define(
        &mut self,
        name: &Spanned<String>,
        number: &Spanned<Number>,
        replaced: Option<f64>,
    ) -> Result<(), CardiacError> {
        // A formula that is replaced is read all the same.
        let found = self.value(number)?;
        let value = replaced.unwrap_or(found);
        let constant = self.builder.constant(value);
        let at = name.span().start;
        self.builder
            .bind(name.get_ref(), constant)
            .map_err(|error| self.source.error(at, error.to_string()))?;
        self.constants.push(Constant { name: name.get_ref().clone(), value });
        Ok(())
    }

    fn value(&mut self, number: &Spanned<Number>) -> Result<f64, CardiacError> {
        let value = match number.get_ref() {
            Number::Value(value) => *value,
            Number::Formula(text) => {
                let formula = Formula { text: text.clone(), begin: self.source.content(&number.span()) };
                let value = read(self.source, &mut self.builder, &formula)?;
                let mut values = [f64::NAN];
                self.builder.finish(&[value]).eval(&[], &mut values);
                values[0]
            }
        };
        if value.is_finite() {
            return Ok(value);
        }
        Err(self.source.error(number.span().start, format!("the value is {value}, not a finite number")))
    }
}

/// Reads a formula into a builder.
pub(super) fn read(
    source: &Source,
    builder: &mut ProgramBuilder,
    formula: &Formula,
) -> Result<Value, CardiacError> {
    builder.expression(&formula.text).map_err(|error| {
        let ExpressionError { span: Range { start, .. }, .. } = error;
        source.error(formula.begin + start, error.to_string())
    })
}
